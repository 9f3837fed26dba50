//! Progress bars: on stderr, and only when it is a terminal.

use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Whether rows go to the terminal, line after line: a bar would stand in one of them.
static HAS_ROWS: AtomicBool = AtomicBool::new(false);

/// Rows go to a terminal from here on, which is most often the one of stderr: no bar is shown.
pub(crate) fn give_way_to_rows() {
    HAS_ROWS.store(true, Ordering::Relaxed);
}

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
    let target = if HAS_ROWS.load(Ordering::Relaxed) {
        ProgressDrawTarget::hidden()
    } else {
        // Draws nothing when it is not a terminal, or one that cannot go back in its line (`TERM=dumb`).
        ProgressDrawTarget::stderr_with_hz(10)
    };
    let bar = ProgressBar::with_draw_target(Some(length), target);
    bar.set_style(ProgressStyle::with_template(template).expect("the template is a constant"));
    // Drawn by whoever moves it: a thread of its own that cannot be started would be a panic.
    bar.tick();
    bar
}
