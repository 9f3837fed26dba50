//! A table as lines of text, and its random splits.

use std::path::PathBuf;

use super::case::Figures;
use super::runner::Runner;
use crate::root;

pub(super) struct Table {
    /// Empty where the format has none.
    pub(super) header: String,
    pub(super) rows: Vec<String>,
    /// TOML that says `adjacency = "add-remove"`, which a case replaces by its own.
    pub(super) schema: String,
}

/// Two files of rows.
pub(super) struct Split {
    pub(super) training: PathBuf,
    pub(super) test: PathBuf,
    /// Rows of the training file.
    pub(super) rows: usize,
    /// What the shares of the training labels alone are worth on the test rows; None for a target that is a number.
    pub(super) base_rate: Option<Figures>,
}

/// What is predicted, and where it stands in a line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// A class in the last column.
    Class,
    /// A class before the first space, as in libsvm files.
    FirstWord,
    Number,
}

impl Table {
    /// A table that comes with the repository.
    pub(super) fn example(name: &str) -> Result<Self, String> {
        let place = root().join(format!("examples/{name}"));
        let read =
            |path: PathBuf| super::data_folder::read(&path).map_err(|error| format!("{}: {error}", path.display()));
        let text = read(place.join(format!("{name}.csv.xz")))?;
        let mut lines = text.lines().map(str::to_owned);
        let header = lines.next().ok_or("the table is empty")?;
        Ok(Self { header, rows: lines.collect(), schema: read(place.join(format!("{name}.toml")))? })
    }

    /// Rows of a training split.
    pub(super) fn training_rows(&self) -> usize {
        self.rows.len() * 4 / 5
    }

    /// `1 / (training rows)²`.
    pub(super) fn delta(&self) -> f64 {
        (self.training_rows() as f64).powi(-2)
    }

    /// 80 % of the rows and the rest, shuffled with `seed`.
    pub(super) fn split(&self, runner: &Runner<'_>, seed: u64, target: Target) -> Result<Split, String> {
        let mut order = lines(&self.rows);
        fastrand::Rng::with_seed(seed).shuffle(&mut order);
        let (training, test) = order.split_at(self.training_rows());
        self.save(runner, training, test, target)
    }

    pub(super) fn save(
        &self,
        runner: &Runner<'_>,
        training: &[&str],
        test: &[&str],
        target: Target,
    ) -> Result<Split, String> {
        Ok(Split {
            training: self.write(runner, "training.csv", training)?,
            test: self.write(runner, "test.csv", test)?,
            rows: training.len(),
            base_rate: (target != Target::Number).then(|| base_rate(target, training, test)),
        })
    }

    pub(super) fn write(&self, runner: &Runner<'_>, name: &str, rows: &[&str]) -> Result<PathBuf, String> {
        let header = Some(self.header.as_str()).filter(|header| !header.is_empty());
        let lines = header.into_iter().chain(rows.iter().copied());
        runner.write(name, &lines.map(|line| format!("{line}\n")).collect::<String>())
    }
}

pub(super) fn lines(rows: &[String]) -> Vec<&str> {
    rows.iter().map(String::as_str).collect()
}

/// Accuracy and log loss of the shares of classes.
fn base_rate(target: Target, training: &[&str], test: &[&str]) -> Figures {
    let class = |line: &&str| {
        let class = if target == Target::FirstWord { line.split(' ').next() } else { line.rsplit(',').next() };
        class.unwrap_or_default().to_owned()
    };
    let mut counts = std::collections::BTreeMap::<String, f64>::new();
    training.iter().for_each(|line| *counts.entry(class(line)).or_default() += 1.0);
    let usual = counts.iter().max_by(|left, right| left.1.total_cmp(right.1)).map(|(class, _)| class.clone());
    let (mut right, mut loss) = (0.0, 0.0);
    for line in test {
        let class = class(line);
        right += f64::from(u8::from(Some(&class) == usual.as_ref()));
        loss -= (counts.get(&class).copied().unwrap_or_default() / training.len() as f64).ln();
    }
    let rows = test.len() as f64;
    Figures::from([("accuracy", right / rows), ("auc", 0.5), ("log_loss", loss / rows)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_rate_is_that_of_the_training_labels() {
        let figures = base_rate(Target::Class, &["1,a", "2,a", "3,a", "4,b"], &["5,a", "6,b"]);
        assert!((figures["accuracy"] - 0.5).abs() < 1e-12, "a is the usual class");
        let expected = -(0.75f64.ln() + 0.25f64.ln()) / 2.0;
        assert!((figures["log_loss"] - expected).abs() < 1e-12, "{figures:?}");
    }
}
