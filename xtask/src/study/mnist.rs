//! MNIST: ten classes from raw pixels, measured on the official test images.

use super::case::cases;
use super::report;
use super::runner::Runner;
use super::table::{Table, Target, lines};

const PIXELS: usize = 784;

pub(super) fn run(runner: &mut Runner<'_>) -> Result<(), String> {
    let training = read(runner, "train")?;
    let test = read(runner, "t10k")?;
    let names: Vec<String> = (0..PIXELS).map(|pixel| format!("p{pixel}")).collect();
    let classes: Vec<String> = (0..10).map(|digit| format!("\"{digit}\"")).collect();
    let mut schema = format!(
        "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"digit\"\nclasses = [{}]\n[features]\n",
        classes.join(", ")
    );
    names.iter().for_each(|name| schema.push_str(&format!("{name} = {{ bounds = [0, 255] }}\n")));
    let table = Table { header: format!("{},digit", names.join(",")), rows: Vec::new(), schema };
    let split = table.save(runner, &lines(&training), &lines(&test), Target::Class)?;
    let delta = (training.len() as f64).powi(-2);
    let adjacencies = runner.adjacencies(&["add-remove"]);
    let all =
        cases("mnist", &["noisy-gd", "objective-perturbation"], &adjacencies, &runner.epsilons(&[0.1, 1.0]), delta);
    for seed in 0..runner.splits(1) {
        runner.compare(&all, &table.schema, &split, seed)?;
    }
    report::table(runner, report::CLASSES);
    Ok(())
}

/// Pixels, then the digit, a line an image.
fn read(runner: &Runner<'_>, part: &str) -> Result<Vec<String>, String> {
    let images = runner.data.bytes(&format!("mnist/{part}-images-idx3-ubyte.gz"))?;
    let labels = runner.data.bytes(&format!("mnist/{part}-labels-idx1-ubyte.gz"))?;
    // The headers: magic number and sizes, 4 bytes each.
    let (Some(images), Some(labels)) = (images.get(16..), labels.get(8..)) else {
        return Err(format!("mnist/{part}: not IDX files"));
    };
    if images.len() != labels.len() * PIXELS {
        return Err(format!("mnist/{part}: images and labels do not match"));
    }
    let line = |(image, label): (&[u8], &u8)| {
        let mut line = String::with_capacity(2 * PIXELS);
        image.iter().for_each(|pixel| {
            line.push_str(&pixel.to_string());
            line.push(',');
        });
        line.push_str(&label.to_string());
        line
    };
    Ok(images.chunks(PIXELS).zip(labels).map(line).collect())
}
