//! Covertype of Blackard and Dean: seven kinds of forest cover, 150,265 of the 581,012 rows with the proportions of all.

use super::case::cases;
use super::report;
use super::runner::Runner;
use super::table::{Table, Target};

/// Numeric columns in the file's order, with bounds that the quantities have anywhere: metres, degrees, shades of 8 bits.
const NUMBERS: [(&str, i32, i32); 10] = [
    ("elevation", 0, 4500),
    ("aspect", 0, 360),
    ("slope", 0, 90),
    ("horizontal_distance_to_hydrology", 0, 2000),
    ("vertical_distance_to_hydrology", -500, 1000),
    ("horizontal_distance_to_roadways", 0, 10_000),
    ("hillshade_9am", 0, 255),
    ("hillshade_noon", 0, 255),
    ("hillshade_3pm", 0, 255),
    ("horizontal_distance_to_fire_points", 0, 10_000),
];

/// Categories, of which the file has a column each.
const CATEGORIES: [(&str, usize); 2] = [("wilderness_area", 4), ("soil_type", 40)];

pub(super) fn run(runner: &mut Runner<'_>) -> Result<(), String> {
    let table = read(runner)?;
    let adjacencies = runner.adjacencies(&["add-remove"]);
    let all = cases("covertype", &["noisy-gd"], &adjacencies, &runner.epsilons(&[0.01, 0.1, 1.0]), table.delta());
    for seed in 0..runner.splits(3) {
        let split = table.split(runner, seed, Target::Class)?;
        runner.compare(&all, &table.schema, &split, seed)?;
    }
    report::table(runner, report::CLASSES);
    Ok(())
}

fn read(runner: &Runner<'_>) -> Result<Table, String> {
    const FILE: &str = "covertype/covtype_7class_subset.csv.xz";
    let text = runner.data.text(FILE)?;
    let rows = text.lines().map(row).collect::<Option<_>>().ok_or_else(|| {
        format!("{FILE}: each row has an index, ten numbers, one place that is 1 for each category, and a class")
    })?;
    let quoted = |count: usize| -> String {
        let all: Vec<String> = (1..=count).map(|one| format!("\"{one}\"")).collect();
        all.join(", ")
    };
    let mut schema = format!(
        "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"cover\"\nclasses = [{}]\n[features]\n",
        quoted(7)
    );
    for (name, low, high) in NUMBERS {
        schema.push_str(&format!("{name} = {{ bounds = [{low}, {high}] }}\n"));
    }
    for (name, count) in CATEGORIES {
        schema.push_str(&format!("{name} = {{ categories = [{}] }}\n", quoted(count)));
    }
    let names = NUMBERS.iter().map(|(name, ..)| *name).chain(CATEGORIES.iter().map(|(name, _)| *name));
    let header = names.chain(["cover"]).collect::<Vec<_>>().join(",");
    Ok(Table { header, rows, schema })
}

/// Numbers, the number of each category, and the class.
fn row(line: &str) -> Option<String> {
    let fields: Vec<&str> = line.split(',').collect();
    let [_, numbers @ .., class] = &fields[..] else { return None };
    let (numbers, mut places) = numbers.split_at_checked(NUMBERS.len())?;
    let mut row: Vec<String> = numbers.iter().map(|number| (*number).to_owned()).collect();
    for (_, count) in CATEGORIES {
        let (of_one, rest) = places.split_at_checked(count)?;
        places = rest;
        row.push((of_one.iter().position(|place| *place == "1")? + 1).to_string());
    }
    row.push((*class).to_owned());
    places.is_empty().then(|| row.join(","))
}
