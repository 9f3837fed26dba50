//! Progress bars: on stderr, and only when it is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shows a bar over the bytes of a file while `read` works, which says how far it is. Bytes read say no more than the file's
/// size, which whoever sees this terminal sees too.
pub(crate) fn while_reading<T, E>(bytes: u64, read: impl FnOnce(&mut dyn FnMut(u64)) -> Result<T, E>) -> Result<T, E> {
    let bar = bar(bytes, "reading   {wide_bar} {bytes}/{total_bytes}");
    let result = read(&mut |bytes| bar.set_position(bytes));
    bar.finish_and_clear();
    result
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
    // A thread of its own ticks: none is asked for where nothing is drawn.
    if !bar.is_hidden() {
        bar.enable_steady_tick(Duration::from_millis(200));
    }
    bar
}
