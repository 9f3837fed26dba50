//! Accuracy against epsilon, as a picture.

use super::case::NON_PRIVATE;
use super::report::summary;
use super::runner::Runner;

/// Logarithm of epsilon, accuracy and its error in percent.
type Point = (f64, f64, f64);

/// Blue, orange, green: told apart by most who do not see all colours (Okabe and Ito 2008).
const COLOURS: [[u8; 3]; 3] = [[0, 114, 178], [230, 159, 0], [0, 158, 115]];

/// Accuracy against epsilon on a logarithmic axis, one line a method, with the non-private line; drawn where the record goes.
pub(super) fn accuracy(runner: &Runner<'_>, table: &str, adjacency: &str) -> Result<(), String> {
    use plotters::prelude::*;
    let Some(folder) = runner.record_folder() else { return Ok(()) };
    let path = &folder.join(format!("{table}-{adjacency}.svg"));
    // In the order of first runs, one line a method.
    let mut lines: Vec<(&str, Vec<Point>)> = Vec::new();
    let mut ceiling = 0.0;
    for (case, runs) in runner.results.iter().filter(|(case, _)| case.table == table) {
        let (mean, error) = summary("accuracy", runs).unwrap_or_default();
        match &case.privacy {
            Some(privacy) if privacy.adjacency == adjacency => {
                let point = (privacy.epsilon.log10(), 100.0 * mean, 100.0 * error);
                match lines.iter_mut().find(|(method, _)| *method == case.method) {
                    Some((_, points)) => points.push(point),
                    None => lines.push((&case.method, vec![point])),
                }
            }
            None if case.method == NON_PRIVATE => ceiling = 100.0 * mean,
            Some(_) | None => {}
        }
    }
    let points = || lines.iter().flat_map(|(_, points)| points);
    let lowest = points().map(|(_, accuracy, error)| accuracy - error).fold(ceiling, f64::min);
    let (left, right) = points().fold((f64::MAX, f64::MIN), |(left, right), (x, _, _)| (left.min(*x), right.max(*x)));
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
        for ((method, points), colour) in lines.iter().zip(COLOURS.iter().cycle()) {
            let colour = RGBColor(colour[0], colour[1], colour[2]);
            chart
                .draw_series(LineSeries::new(points.iter().map(|(x, y, _)| (*x, *y)), colour.stroke_width(2)))?
                .label(*method)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(2)));
            chart.draw_series(points.iter().map(|(x, y, _)| Circle::new((*x, *y), 4, colour.filled())))?;
            let bars = points.iter().map(|(x, y, error)| PathElement::new([(*x, y - error), (*x, y + error)], colour));
            chart.draw_series(bars)?;
        }
        chart.configure_series_labels().position(SeriesLabelPosition::LowerRight).border_style(BLACK).draw()?;
        area.present()?;
        Ok(())
    };
    draw().map_err(|error| format!("{}: {error}", path.display()))
}
