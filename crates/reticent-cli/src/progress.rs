//! Progress bars: on stderr, and only when it is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar over bytes of a file. Bytes read say no more than the file's size, which whoever sees this terminal sees too.
pub(crate) fn reading(bytes: u64) -> ProgressBar {
    bar(bytes, "reading   {wide_bar} {bytes}/{total_bytes}")
}

/// A bar over the passes of a fit: their number is public.
pub(crate) fn passes(count: u64) -> ProgressBar {
    bar(count, "fitting   {wide_bar} pass {pos}/{len}")
}

/// A bar over the fits of an audit.
pub(crate) fn fits(count: u64) -> ProgressBar {
    bar(count, "auditing  {wide_bar} fit {pos}/{len}")
}

fn bar(length: u64, template: &str) -> ProgressBar {
    // `stderr()` draws nothing when it is not a terminal.
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr_with_hz(10));
    bar.set_style(ProgressStyle::with_template(template).expect("the template is a constant"));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
