//! The claimed and the observed trade-off between the two errors of a test, as a picture.

use std::fs::File;
use std::io::Write;

use plotters::prelude::*;
use reticent_fit::audit::claimed_misses;

use super::Audit;
use crate::failure::Failure;

/// Points of a curve.
const POINTS: usize = 400;

/// Draws the curves as SVG: the observed one must not run below the claimed one, but for chance.
pub(super) fn draw(audit: &Audit, file: &mut File) -> Result<(), Failure> {
    let mut svg = String::new();
    let failed = |error: &dyn std::fmt::Display| Failure::InputOutput(format!("drawing the plot: {error}"));
    {
        let area = SVGBackend::with_string(&mut svg, (720, 560)).into_drawing_area();
        area.fill(&WHITE).map_err(|error| failed(&error))?;
        let title = format!("{}: {} fits of each neighbour", audit.method, audit.errors.runs);
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 20))
            .margin(16)
            .x_label_area_size(44)
            .y_label_area_size(52)
            .build_cartesian_2d(0.0..1.0, 0.0..1.0)
            .map_err(|error| failed(&error))?;
        chart
            .configure_mesh()
            .x_desc("false alarms")
            .y_desc("misses")
            .light_line_style(WHITE)
            .draw()
            .map_err(|error| failed(&error))?;
        let claimed = (1..POINTS)
            .map(|point| point as f64 / POINTS as f64)
            .map(|alarms| (alarms, claimed_misses(alarms, audit.mu)));
        let (blue, orange) = (RGBColor(0, 114, 178), RGBColor(213, 94, 0));
        chart
            .draw_series(LineSeries::new(claimed, blue.stroke_width(2)))
            .map_err(|error| failed(&error))?
            .label(format!("claimed: no test does better than this (mu {:.3})", audit.mu))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], blue.stroke_width(2)));
        chart
            .draw_series(LineSeries::new(observed(&audit.scores), orange.stroke_width(2)))
            .map_err(|error| failed(&error))?
            .label("observed: the audit's test, at every threshold")
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], orange.stroke_width(2)));
        chart
            .draw_series(LineSeries::new([(0.0, 1.0), (1.0, 0.0)], BLACK.mix(0.3)))
            .map_err(|error| failed(&error))?
            .label("guessing")
            .legend(|(x, y)| PathElement::new([(x, y), (x + 22, y)], BLACK.mix(0.3)));
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE)
            .border_style(BLACK.mix(0.3))
            .draw()
            .map_err(|error| failed(&error))?;
        area.present().map_err(|error| failed(&error))?;
    }
    file.write_all(svg.as_bytes()).map_err(|error| failed(&error))
}

/// (false alarms, misses) at thresholds spread over all scores.
fn observed([first, second]: &[Vec<f64>; 2]) -> Vec<(f64, f64)> {
    let mut sorted = [first.clone(), second.clone()];
    sorted.iter_mut().for_each(|scores| scores.sort_by(f64::total_cmp));
    let mut thresholds: Vec<f64> = sorted.concat();
    thresholds.sort_by(f64::total_cmp);
    let share_above = |scores: &[f64], threshold: f64| {
        1.0 - scores.partition_point(|score| *score <= threshold) as f64 / scores.len() as f64
    };
    let step = (thresholds.len() / POINTS).max(1);
    let inner = thresholds
        .iter()
        .rev()
        .step_by(step)
        .map(|threshold| (share_above(&sorted[0], *threshold), 1.0 - share_above(&sorted[1], *threshold)));
    std::iter::once((0.0, 1.0)).chain(inner).chain(std::iter::once((1.0, 0.0))).collect()
}
