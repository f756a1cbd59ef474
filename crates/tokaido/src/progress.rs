//! Progress bars on standard error. None is drawn if that is not a terminal.

use std::{io::Write, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};
pub(crate) use tokaido_bench::units::thousands;

/// How often a bar is redrawn while it does not move.
const TICK: Duration = Duration::from_millis(100);

/// The bar with a known total: while it moves, and when it is full.
const MOVING: &str = "  {bar:32.cyan/dim} {percent:>3}%  {msg}  {eta} left";
const FULL: &str = "  {bar:32.cyan/dim} {percent:>3}%  {msg}";

/// The display without a known total.
const COUNTING: &str = "  {spinner}  {msg}";

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template);
    style.expect("templates are constants").progress_chars("━╸─")
}

/// A bar that shows how many rows were processed, and how fast.
pub(crate) struct Progress {
    bar: ProgressBar,
    rows: u64,
}

/// A bar's position is updated only once per this many rows, since drawing costs time.
const ROWS_PER_UPDATE: u64 = 512;

impl Progress {
    /// Creates a bar over `total` units, bytes or rows; without a total it only counts.
    pub(crate) fn new(total: Option<u64>) -> Self {
        let (bar, template) = match total {
            Some(total) => (ProgressBar::new(total), MOVING),
            None => (ProgressBar::new_spinner(), COUNTING),
        };
        bar.set_style(style(template));
        bar.enable_steady_tick(TICK);
        Self { bar, rows: 0 }
    }

    /// Counts one more row, at `position` of the total.
    pub(crate) fn row(&mut self, position: u64) {
        self.rows += 1;
        if self.rows.is_multiple_of(ROWS_PER_UPDATE) {
            self.show(position);
        }
    }

    /// Draws the bar at `position`.
    pub(crate) fn show(&self, position: u64) {
        self.bar.set_position(position);
        let rate = self.rows as f64 / self.bar.elapsed().as_secs_f64().max(1e-9);
        self.bar.set_message(format!(
            "{} rows, {}/s",
            thousands(self.rows),
            thousands(rate as u64)
        ));
    }

    /// Writes a line above the bar.
    pub(crate) fn complain(&self, line: &str) {
        self.bar.suspend(|| {
            // If nobody can read it, a complaint is lost; the summary still counts it.
            let _ = writeln!(std::io::stderr(), "{line}");
        });
    }

    /// Leaves the full bar on the screen.
    pub(crate) fn finish(self) {
        self.bar.set_style(style(FULL));
        self.show(self.bar.length().unwrap_or(self.rows));
        self.bar.finish();
    }

    /// Removes the bar from the screen.
    pub(crate) fn clear(self) {
        self.bar.finish_and_clear();
    }
}

/// A status line on standard error.
pub(crate) struct Status(ProgressBar);

impl Status {
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        bar.set_style(style(COUNTING));
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    /// Replaces the previous status.
    pub(crate) fn show(&self, what: &str) {
        self.0.set_message(what.to_owned());
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
