//! How many rows have a usable target, as far as counts tell that a fit releases anyway: a remark where they show none.
//!
//! Nothing is refused for it, and nothing is asked: the remark is computed from releases that are paid for.

use reticent_core::adjacency::Adjacency;
use reticent_core::query::Map;
use reticent_core::schema::{Schema, TargetKind};
use reticent_core::sum::Release;

use crate::plan::Plan;

/// Released counts of rows by their target, pooled by their precision. It is shown the releases of a plan in their order.
pub(crate) struct UsableRows {
    /// How many coordinates of each release count rows by their target, from the first one: as far as each is asked once.
    counts: std::vec::IntoIter<usize>,
    rows: f64,
    precision: f64,
}

/// Fewer rows than so many standard deviations of their noise may be none.
const DEVIATIONS: f64 = 4.0;
/// There are at most so many standard deviations more rows than were counted, with a confidence of 97.7 %.
const MOST_DEVIATIONS: f64 = 2.0;

impl UsableRows {
    /// None counted yet.
    pub(crate) fn of(plan: &Plan) -> Self {
        let once = plan.releases.iter().take_while(|release| release.times == 1);
        let counts: Vec<usize> = once.map(|release| leading_counts(release.shape.map())).collect();
        Self { counts: counts.into_iter(), rows: 0.0, precision: 0.0 }
    }

    /// Takes the next release of the plan into account.
    pub(crate) fn observe(&mut self, release: &Release) {
        let Some(count) = self.counts.next().filter(|count| *count > 0) else { return };
        let precision = release.noise_standard_deviation.powi(-2) / count as f64;
        let rows: f64 = release.values()[..count].iter().sum();
        self.rows = (self.precision * self.rows + precision * rows) / (self.precision + precision);
        self.precision += precision;
    }

    /// What to say where noise could be all that was counted, unless no more rows are declared. Under label adjacency which rows have a usable
    /// target is public, and a fit without any is refused: there is nothing to guess.
    pub(crate) fn remark(&self, schema: &Schema) -> Option<String> {
        let noise = self.precision.powf(-0.5);
        let is_public = schema.privacy().adjacency == Adjacency::Label;
        if is_public || self.precision <= 0.0 || self.rows >= DEVIATIONS * noise {
            return None;
        }
        let most = (self.rows.max(0.0) + MOST_DEVIATIONS * noise).ceil();
        if schema.privacy().rows.is_some_and(|rows| rows as f64 <= most) {
            return None;
        }
        let column = &schema.target().column;
        let mend = match schema.target().kind {
            TargetKind::Classes(_) => {
                format!("compare the values of its column `{column}` with `classes` in the schema")
            }
            TargetKind::Bounds { .. } => {
                format!("look how the numbers of its column `{column}` are written: 12.5, not 12,5 or 12 kg")
            }
        };
        Some(format!(
            "the released counts show no rows with a usable target beyond their noise (at most {most}), and the model says next to \
             nothing; if the table has more rows, {mend}"
        ))
    }
}

/// How many coordinates of an answer count rows by their target, from the first one.
fn leading_counts(map: &Map) -> usize {
    if let Map::ClassCount { classes } | Map::Marginals { classes, .. } = map {
        // Of a number the first coordinate counts all usable rows.
        return (*classes).max(1) as usize;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(rows: &str, target: &str) -> Schema {
        let text = format!(
            "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n{rows}\n[target]\ncolumn = \"y\"\n{target}\n\
             [features]\na = {{ bounds = [0, 10] }}\n"
        );
        Schema::from_text(&text).expect("legal")
    }

    fn remark(counts: Vec<usize>, releases: &[(&[i128], f64)], schema: &Schema) -> Option<String> {
        let mut usable = UsableRows { counts: counts.into_iter(), rows: 0.0, precision: 0.0 };
        for (integers, noise) in releases {
            usable.observe(&Release { integers: integers.to_vec(), step: 1.0, noise_standard_deviation: *noise });
        }
        usable.remark(schema)
    }

    #[test]
    fn about_no_rows_are_remarked_where_noise_does_not_hide_more() {
        let classes = schema("", "classes = [0, 1]");
        assert_eq!(remark(vec![0], &[(&[0], 1.0)], &classes), None, "nothing was counted");
        assert_eq!(remark(vec![2], &[(&[30, 30, 7], 10.0)], &classes), None);
        let found = remark(vec![2], &[(&[30, -20, 1000], 10.0)], &classes).expect("within the noise of 0");
        assert!(found.contains("at most 39") && found.contains("`classes`"), "{found}");
        // A second count halves the variance, and the third release is of something else.
        let found = remark(vec![2, 2, 0], &[(&[5, 5], 10.0), (&[-5, -5], 10.0), (&[900], 1.0)], &classes);
        assert!(found.expect("none").contains("at most 20"));
        let number = |rows: &str| remark(vec![1], &[(&[0, 900], 10.0)], &schema(rows, "bounds = [0, 1]"));
        assert!(number("rows = 1000").expect("1000 are declared").contains("not 12,5"));
        assert_eq!(number("rows = 15"), None, "as few as are declared");
    }
}
