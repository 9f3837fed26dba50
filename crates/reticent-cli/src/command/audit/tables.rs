//! Neighbouring synthetic tables, chosen to be as different as neighbours can be.

use reticent_core::adjacency::Adjacency;
use reticent_core::record::{Cell, Label};
use reticent_core::schema::{Feature, FeatureKind, Schema, TargetKind};
use reticent_curator::memory_engine::MemoryEngine;
use reticent_curator::table::CodedTable;
use reticent_fit::prepared_fit::PreparedFit;

use super::start::Start;
use super::trial::{Neighbour, Trial};

/// The target of most small schemas.
pub(super) const TWO_CLASSES: &str = "classes = [\"no\", \"yes\"]";

/// Schemas of two numbers and a category, one for each kind of target and adjacency that a method may need; most methods take
/// the first.
pub(super) fn small_schemas(rows: usize) -> impl Iterator<Item = Schema> {
    ["add-remove", "label"].into_iter().flat_map(move |adjacency| {
        let privacy = format!("adjacency = \"{adjacency}\"\nrows = {}", rows.max(1));
        [TWO_CLASSES, "bounds = [0, 1]"].map(|target| small_schema(&privacy, target))
    })
}

/// A schema of two numbers and a category, with these lines about privacy and target.
pub(super) fn small_schema(privacy: &str, target: &str) -> Schema {
    let text = format!(
        "[privacy]\nunit = \"row\"\n{privacy}\n[target]\ncolumn = \"y\"\n{target}\n\
         [features]\na = {{ bounds = [0, 1] }}\nb = {{ bounds = [0, 1] }}\nc = {{ categories = [\"u\", \"v\"] }}\n"
    );
    Schema::from_text(&text).expect("a legal schema")
}

#[derive(Clone, PartialEq)]
struct Row {
    cells: Vec<Cell>,
    label: Label,
}

/// Features as far out as the schema lets them be.
#[derive(Clone, Copy)]
enum Corner {
    Low,
    High,
    Mixed,
}

impl Corner {
    const ALL: [Self; 3] = [Self::Low, Self::High, Self::Mixed];

    const fn name(self) -> &'static str {
        match self {
            Self::Low => "all features at the lower end",
            Self::High => "all features at the upper end",
            Self::Mixed => "features at alternating ends",
        }
    }

    const fn opposite(self) -> Self {
        match self {
            Self::Low | Self::Mixed => Self::High,
            Self::High => Self::Low,
        }
    }

    fn cells(self, schema: &Schema) -> Vec<Cell> {
        let cell = |(place, feature): (usize, &Feature)| {
            let up = match self {
                Self::Low => false,
                Self::High => true,
                Self::Mixed => place % 2 == 0,
            };
            match &feature.kind {
                FeatureKind::Numeric { low, high, .. } => Cell::Number(if up { *high } else { *low }),
                FeatureKind::Categorical { categories, .. } => {
                    Cell::Category(if up { categories.len() as u32 } else { 1 })
                }
                FeatureKind::Hashed { buckets } => Cell::Category(if up { *buckets as u32 } else { 1 }),
            }
        };
        schema.features().iter().enumerate().map(cell).collect()
    }
}

/// The two ends of the target.
fn labels(schema: &Schema) -> [Label; 2] {
    match &schema.target().kind {
        TargetKind::Classes(classes) => [Label::Class(0), Label::Class((classes.len() - 1) as u16)],
        TargetKind::Bounds { low, high } => [Label::Value(*low), Label::Value(*high)],
    }
}

/// Pairs to try: one unit's rows in a corner, alone or among `rows` rows that a model would learn the opposite from. With a
/// start model that is sure of a class, the unit has another.
pub(super) fn trials<'a>(schema: &'a Schema, rows: usize, start: &Start, prepared: &'a PreparedFit) -> Vec<Trial<'a>> {
    let unit_rows = schema.privacy().unit.rows_max() as usize;
    let ends = labels(schema);
    let mut trials = Vec::new();
    for corner in Corner::ALL {
        let surprising = |(label, _): &(Label, Label)| start.sure_of.is_none_or(|sure| sure != *label);
        for (label, other) in [(ends[0], ends[1]), (ends[1], ends[0])].into_iter().filter(surprising) {
            let row = |corner: Corner, label| Row { cells: corner.cells(schema), label };
            let unit = |row: Row| vec![row; unit_rows];
            let against = vec![row(corner, other); rows];
            let (held, name) = (unit(row(corner, label)), format!("{} and target {}", corner.name(), word(label)));
            let mut push = |around: &[Row], second: Vec<Row>, change: &str| {
                let first = match schema.privacy().adjacency {
                    Adjacency::AddRemove => Vec::new(),
                    Adjacency::Replace | Adjacency::Label | Adjacency::Party => held.clone(),
                };
                let surroundings = match around.len() {
                    0 => "nothing else".to_owned(),
                    count => format!("{count} other rows"),
                };
                let start = start.description;
                let description = format!("one unit with {name}, {change}; {surroundings} in the table{start}");
                let around = around.to_vec();
                let neighbours = move || [engine(schema, &around, &first), engine(schema, &around, &second)];
                trials.push(Trial { description, prepared, neighbours: Box::new(neighbours) });
            };
            match schema.privacy().adjacency {
                Adjacency::AddRemove => {
                    push(&[], held.clone(), "there or not");
                    push(&against, held.clone(), "there or not");
                }
                Adjacency::Replace => {
                    for around in [&[][..], &against] {
                        push(around, unit(row(corner, other)), "or with the other target");
                        push(around, unit(row(corner.opposite(), label)), "or at the other end");
                        push(around, unit(row(corner.opposite(), other)), "or at the other end with the other target");
                    }
                }
                Adjacency::Label | Adjacency::Party => {
                    // Public features that are all alike would let a method work with a single column.
                    let spread: Vec<Row> = (0..rows)
                        .map(|place| {
                            let corner = if place % 8 == 0 { corner } else { Corner::ALL[place % 3] };
                            row(corner, ends[place / 3 % 2])
                        })
                        .collect();
                    push(&spread, unit(row(corner, other)), "or with the other target");
                }
            }
        }
    }
    trials
}

fn word(label: Label) -> &'static str {
    match label {
        Label::Class(0) => "the first class",
        Label::Class(_) => "the last class",
        Label::Value(_) => "at one bound",
        Label::Unusable => "missing",
    }
}

/// Rows of a unit each, and those of one.
fn engine(schema: &Schema, around: &[Row], unit: &[Row]) -> Neighbour {
    let mut table = CodedTable::empty(schema);
    let mut push = |key: usize, row: &Row| table.push_of_unit(&key.to_be_bytes(), &row.cells, row.label);
    around.iter().enumerate().for_each(|(place, row)| push(place, row));
    unit.iter().for_each(|row| push(around.len(), row));
    Box::new(MemoryEngine::new(table))
}
