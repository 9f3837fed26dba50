//! Accuracy against epsilon, as a picture.

use super::case::NON_PRIVATE;
use super::report::summary;
use super::runner::Runner;

/// Accuracy against epsilon on a logarithmic axis, with the non-private line; drawn where the record goes.
pub(super) fn accuracy(runner: &Runner<'_>, table: &str, adjacency: &str) -> Result<(), String> {
    use plotters::prelude::*;
    let Some(folder) = runner.record_folder() else { return Ok(()) };
    let path = &folder.join(format!("{table}-{adjacency}.svg"));
    let mut points: Vec<(f64, f64, f64)> = Vec::new();
    let mut ceiling = 0.0;
    for (case, runs) in runner.results.iter().filter(|(case, _)| case.table == table) {
        let (mean, error) = summary("accuracy", runs).unwrap_or_default();
        match &case.privacy {
            Some(privacy) if privacy.adjacency == adjacency => {
                points.push((privacy.epsilon.log10(), 100.0 * mean, 100.0 * error));
            }
            None if case.method == NON_PRIVATE => ceiling = 100.0 * mean,
            Some(_) | None => {}
        }
    }
    let lowest = points.iter().map(|(_, accuracy, error)| accuracy - error).fold(ceiling, f64::min);
    let (left, right) =
        points.iter().fold((f64::MAX, f64::MIN), |(left, right), (x, _, _)| (left.min(*x), right.max(*x)));
    let draw = || -> Result<(), Box<dyn std::error::Error>> {
        let area = SVGBackend::new(path, (720, 400)).into_drawing_area();
        area.fill(&WHITE)?;
        let title = format!("{table}, {adjacency}: test accuracy [%]");
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(52)
            .build_cartesian_2d(left - 0.1..right + 0.1, lowest - 0.5..ceiling + 0.5)?;
        chart
            .configure_mesh()
            .x_desc("epsilon")
            .x_label_formatter(&|x| format!("{:.3}", 10f64.powf(*x)))
            .y_label_formatter(&|y| format!("{y:.1}"))
            .light_line_style(WHITE)
            .draw()?;
        let ceiling_line = [(left - 0.1, ceiling), (right + 0.1, ceiling)];
        chart
            .draw_series(LineSeries::new(ceiling_line, BLACK.stroke_width(1)))?
            .label("non-private")
            .legend(|(x, y)| PathElement::new([(x, y), (x + 20, y)], BLACK));
        let blue = RGBColor(31, 97, 171);
        chart
            .draw_series(LineSeries::new(points.iter().map(|(x, y, _)| (*x, *y)), blue.stroke_width(2)))?
            .label("reticent")
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], blue));
        chart.draw_series(points.iter().map(|(x, y, _)| Circle::new((*x, *y), 4, blue.filled())))?;
        let bars = points.iter().map(|(x, y, error)| PathElement::new([(*x, y - error), (*x, y + error)], blue));
        chart.draw_series(bars)?;
        chart.configure_series_labels().position(SeriesLabelPosition::LowerRight).border_style(BLACK).draw()?;
        area.present()?;
        Ok(())
    };
    draw().map_err(|error| format!("{}: {error}", path.display()))
}
