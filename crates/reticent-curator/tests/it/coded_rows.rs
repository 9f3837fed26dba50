//! What is made of rows of codes, in every set of instructions that the machine has: the integers of core's scalar reference.

use std::sync::Arc;

use proptest::prelude::*;
use reticent_core::adjacency::PrivacyUnit;
use reticent_core::coding::{CODE_MAX, Coding, SlotKind};
use reticent_core::contribution::CodedLabel;
use reticent_core::encoding::{CodeRange, Encoding, NormRule};
use reticent_core::pass_weights::PassWeights;
use reticent_core::query::{Map, QueryShape, SumQuery};
use reticent_core::schema::Schema;
use reticent_core::sum::PartialSum;
use reticent_curator::kernel::{Instructions, LatticeRowsMut, MarginalPlaces, add_marginals, encode_rows};
use reticent_testkit::reveal;

/// Categories of each feature, "other" counted; none of a number.
#[derive(Clone, Debug)]
struct Table {
    features: Vec<Option<u16>>,
    codes: Vec<u16>,
    labels: Vec<CodedLabel>,
}

impl Table {
    fn coding(&self) -> Coding {
        let mut text =
            "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n\
                        [features]\n"
                .to_owned();
        for (place, categories) in self.features.iter().enumerate() {
            let feature = match categories {
                None => "bounds = [0, 1]".to_owned(),
                Some(categories) => {
                    let names: Vec<String> = (1..*categories).map(|name| format!("\"{name}\"")).collect();
                    format!("categories = [{}]", names.join(", "))
                }
            };
            text.push_str(&format!("x{place} = {{ {feature} }}\n"));
        }
        Coding::of(&Schema::from_text(&text).expect("legal"))
    }
}

/// Numbers in runs and alone, narrow blocks and wide ones.
fn tables() -> impl Strategy<Value = Table> {
    let feature = prop_oneof![5 => Just(None), 2 => (2..9u16).prop_map(Some), 1 => (64..80u16).prop_map(Some)];
    // An interpreter takes a thousand times as long.
    let (features_max, rows_max) = if cfg!(miri) { (5, 6usize) } else { (40, 70) };
    (prop::collection::vec(feature, 1..features_max), 0..rows_max).prop_flat_map(|(features, rows)| {
        let codes: Vec<_> = features
            .iter()
            .map(|feature| match *feature {
                None => prop_oneof![Just(0), Just(CODE_MAX), 0..=CODE_MAX].boxed(),
                Some(categories) => (0..categories).boxed(),
            })
            .collect();
        let label = prop_oneof![8 => 0..3i16, 1 => any::<i16>(), 1 => Just(i16::MIN)];
        let rows = prop::collection::vec((codes, label), rows);
        (Just(features), rows).prop_map(|(features, rows)| {
            let (codes, labels): (Vec<Vec<u16>>, _) = rows.into_iter().unzip();
            Table { features, codes: codes.concat(), labels }
        })
    })
}

fn marginals_by_reference(table: &Table, classes: u32) -> Vec<i64> {
    let coding = table.coding();
    let blocks: Vec<u32> = table.features.iter().flatten().map(|categories| u32::from(*categories)).collect();
    let (categorical, categories) = (blocks.len() as u32, blocks.iter().sum());
    let numeric = table.features.len() as u32 - categorical;
    let map = Map::Marginals { classes, numeric, categorical, categories };
    assert_eq!(map, Map::marginals(classes, &coding));
    let shape = QueryShape::new(map, PrivacyUnit::Row, 1 << 20).expect("small");
    let encoding = Arc::new(Encoding::plain(coding, NormRule::OwnNorm));
    let query = SumQuery::new(shape, encoding, PassWeights::none()).expect("columns fit");
    let mut sum = PartialSum::zero(&query);
    for (codes, label) in table.codes.chunks_exact(table.features.len()).zip(&table.labels) {
        sum.add_codes(&query, codes, *label);
    }
    reveal(sum).into_iter().map(|total| total as i64).collect()
}

fn marginals(instructions: Instructions, table: &Table, classes: u32) -> Vec<i64> {
    let places = MarginalPlaces::new(classes, Some(&table.coding()));
    let mut totals = vec![0; marginals_by_reference(table, classes).len()];
    add_marginals(instructions, &places, &table.codes, &table.labels, &mut totals);
    totals
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 150 }))]

    #[test]
    fn marginals_are_those_of_the_scalar_reference(table in tables(), classes in prop::sample::select(vec![0u32, 2, 3])) {
        let expected = marginals_by_reference(&table, classes);
        for instructions in Instructions::available() {
            prop_assert_eq!(&marginals(instructions, &table, classes), &expected, "{}", instructions.name());
        }
    }

    #[test]
    fn lattice_rows_are_those_of_the_scalar_reference(
        table in tables(),
        centre in prop::collection::vec(0.0..1.0f64, 40),
        scale in prop::collection::vec(0.1..3.0f64, 40),
        norm in prop::sample::select(vec![NormRule::OwnNorm, NormRule::Clip(0.7), NormRule::Clip(5.0)]),
        is_coarse: bool,
        (low, high) in (0..=16_000u16, 16_000..=CODE_MAX),
    ) {
        let coding = table.coding();
        // Blocks of categories keep their centre of 0, without which none is wide.
        let mut centres = vec![centre[0]];
        for (kind, centre) in coding.slot_kinds().zip(centre.iter().cycle()) {
            match kind {
                SlotKind::Numeric => centres.push(*centre),
                SlotKind::Categories(categories) => centres.resize(centres.len() + categories, 0.0),
            }
        }
        let scale: Vec<f64> = scale.into_iter().cycle().take(centres.len()).collect();
        // The first row's codes are set aside, where they are those of numbers.
        let aside = |code: &u16| CodeRange::new(low, high).with_missing((*code).min(CODE_MAX), 16_000);
        let ranges = match table.codes.get(..coding.slots()) {
            Some(first) => first.iter().map(aside).collect(),
            None => vec![CodeRange::new(low, high); coding.slots()],
        };
        let encoding = Encoding::new(coding, centres, scale, norm).coarse(is_coarse).within(ranges);
        let (layout, rows) = (encoding.layout(), table.labels.len());
        for instructions in Instructions::available() {
            let mut packed = vec![0i16; rows * layout.packed().len()];
            let mut chosen_columns = vec![0u32; rows * layout.chosen()];
            let mut chosen = vec![0i16; rows * layout.chosen()];
            let mut own_steps = vec![0f32; if encoding.common_step().is_some() { 0 } else { rows }];
            let into = LatticeRowsMut {
                packed: &mut packed,
                chosen_columns: &mut chosen_columns,
                chosen: &mut chosen,
                own_steps: &mut own_steps,
            };
            encode_rows(instructions, &encoding, &table.codes, into);
            let mut whole = vec![0i16; layout.columns()];
            for (row, codes) in table.codes.chunks_exact(table.features.len()).enumerate() {
                let step = encoding.encode_codes(codes, &mut vec![0.0; layout.columns()], &mut whole);
                let mut found = vec![0i16; layout.columns()];
                let values = &packed[row * layout.packed().len()..];
                layout.packed().iter().zip(values).for_each(|(column, value)| found[*column as usize] = *value);
                let of_row = row * layout.chosen()..(row + 1) * layout.chosen();
                let pairs = chosen_columns[of_row.clone()].iter().zip(&chosen[of_row]);
                pairs.for_each(|(column, value)| found[*column as usize] = *value);
                prop_assert_eq!(&found, &whole, "{}, row {}", instructions.name(), row);
                let found_step = own_steps.get(row).copied().or(encoding.common_step()).expect("one or the other");
                prop_assert_eq!(found_step.to_bits(), step.to_bits());
            }
        }
    }
}

/// The largest moments in all rows: the worst case for the 32-bit sums, past several of their flushes.
#[test]
fn full_scale_moments_do_not_overflow() {
    for (code, moments) in [(0, [-(1i64 << 19), 1 << 19]), (CODE_MAX, [1 << 19, 1 << 19])] {
        for rows in [1, 2047, 2048, 2049, 9000] {
            let table = Table { features: vec![None; 20], codes: vec![code; 20 * rows], labels: vec![0; rows] };
            for instructions in Instructions::available() {
                let found = marginals(instructions, &table, 2);
                let expected = [[(rows as i64) << 20, 0]].into_iter().chain([moments.map(|one| one * rows as i64); 20]);
                assert_eq!(found, expected.flatten().collect::<Vec<_>>(), "{rows} rows, {}", instructions.name());
            }
        }
    }
}
