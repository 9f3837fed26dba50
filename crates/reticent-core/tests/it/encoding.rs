//! Rows on the lattice: within the norm bound, never longer than the real row, the same alone or in company.

use proptest::prelude::*;
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use reticent_core::coding::{CODE_MAX, Coding, SlotMap, number_code};
use reticent_core::compact_row::CompactRowMut;
use reticent_core::encoding::{COARSE_STEPS, CodeRange, Encoding, NormRule};
use reticent_core::record::Cell;
use reticent_testkit::generate::{self, GeneratedRow};

const PRIVACY: &str = "unit = \"row\"\nadjacency = \"add-remove\"";

fn codes(coding: &Coding, schema: &reticent_core::schema::Schema, row: &GeneratedRow) -> Vec<u16> {
    let mut codes = vec![0; coding.codes()];
    coding.encode_cells(&row.cells(schema), &mut codes);
    codes
}

proptest! {
    #[test]
    fn lattice_rows_keep_the_norm_bound(
        rows in generate::rows(3, 2, 1..8),
        centre in prop::collection::vec(-3.0f64..3.0, 12),
        scale in prop::collection::vec(-5.0f64..5.0, 12),
        norm in prop_oneof![Just(NormRule::OwnNorm), (0.01f64..20.0).prop_map(NormRule::Clip)],
    ) {
        let schema = generate::schema(3, 2, PRIVACY);
        let encoding = Encoding::new(Coding::of(&schema), centre.clone(), scale.clone(), norm);
        let mut scratch = vec![0.0; 12];
        for row in &rows {
            let mut features = [0i16; 12];
            let step = encoding.encode_codes(&codes(encoding.coding(), &schema, row), &mut scratch, &mut features);
            let square: u64 = features.iter().map(|feature| u64::from(feature.unsigned_abs()).pow(2)).sum();
            prop_assert!(square <= 32_767 * 32_767);
            prop_assert!(features.iter().all(|feature| *feature > i16::MIN));
            // The whole row counts for its length, the intercept too, and truncation takes less than a step of each coordinate.
            let length = scratch.iter().map(|value| value * value).sum::<f64>().sqrt();
            let (divisor, steps) = match norm {
                NormRule::OwnNorm => (length, length),
                NormRule::Clip(bound) => (length.max(bound), bound),
            };
            prop_assert!((f64::from(step) * 32_767.0 - steps).abs() <= 1e-6 * steps || length <= 0.0);
            for (feature, value) in features.iter().zip(&scratch) {
                prop_assert!((f64::from(*feature) - value / divisor * 32_767.0).abs() < 2.0 || length <= 0.0);
            }
            // Truncation: no coordinate is longer than the real one (up to the float step's own rounding).
            for (feature, value) in features.iter().zip(&scratch) {
                prop_assert!(f64::from(*feature).abs() * f64::from(step) <= value.abs() * (1.0 + 1e-6));
                prop_assert!(*feature == 0 || (*feature > 0) == (*value > 0.0));
            }
        }
    }

    #[test]
    fn no_row_is_longer_than_the_largest_norm(rows in generate::rows(3, 2, 1..8), centre in prop::collection::vec(-1.0f64..2.0, 12)) {
        let schema = generate::schema(3, 2, PRIVACY);
        let coding = Coding::of(&schema);
        let scale = vec![1.5; 12];
        let largest = Encoding::largest_norm(&coding, &centre, &scale);
        let encoding = Encoding::new(coding, centre, scale, NormRule::OwnNorm);
        let (mut scratch, mut features) = (vec![0.0; 12], [0i16; 12]);
        for row in &rows {
            let step = encoding.encode_codes(&codes(encoding.coding(), &schema, row), &mut scratch, &mut features);
            // Under OwnNorm the step is the row's norm over 32767.
            prop_assert!(f64::from(step) * f64::from(CODE_MAX) <= largest * (1.0 + 1e-6));
        }
    }
}

proptest! {
    /// A number's code is what rounding says, and never outside its bounds.
    #[test]
    fn the_code_of_a_number_is_its_rounded_place(
        bits: u64,
        near in -0.5f64..1.5,
        (low, span) in (-1e6f64..1e6, 1e-9f64..1e9),
    ) {
        let full = f64::from(CODE_MAX);
        for value in [f64::from_bits(bits), low + near * span, low + (near * full).floor() / full * span, f64::NAN] {
            let place = (value - low) / span * full + 0.5;
            prop_assert_eq!(number_code(value, low, span), place.clamp(0.0, full) as u16, "{:?}", value);
        }
        let half = (near * full).floor().clamp(0.0, full - 1.0) + 0.5;
        for value in [half.next_down(), half, half.next_up()] {
            prop_assert_eq!(number_code(value, 0.0, full), (value / full * full + 0.5) as u16, "{:?}", value);
        }
    }
}

proptest! {
    /// Coordinates of 8 bits: within the bound, and each near the real one.
    #[test]
    fn coarse_rows_keep_the_norm_bound_and_8_bits(
        rows in generate::rows(3, 2, 1..8),
        centre in prop::collection::vec(-3.0f64..3.0, 12),
        scale in prop::collection::vec(-5.0f64..5.0, 12),
        norm in prop_oneof![Just(NormRule::OwnNorm), (0.01f64..20.0).prop_map(NormRule::Clip)],
    ) {
        let schema = generate::schema(3, 2, PRIVACY);
        let encoding = Encoding::new(Coding::of(&schema), centre, scale, norm).coarse(true);
        let mut scratch = vec![0.0; 12];
        for row in &rows {
            let mut features = [0i16; 12];
            let step = encoding.encode_codes(&codes(encoding.coding(), &schema, row), &mut scratch, &mut features);
            let square: u64 = features.iter().map(|feature| u64::from(feature.unsigned_abs()).pow(2)).sum();
            prop_assert!(square <= 32_767 * 32_767);
            prop_assert!(features.iter().all(|feature| feature % COARSE_STEPS == 0 && i8::try_from(feature / COARSE_STEPS).is_ok()));
            let length = scratch.iter().map(|value| value * value).sum::<f64>().sqrt();
            prop_assume!(length > 0.0);
            let shortened = match norm {
                NormRule::OwnNorm => 1.0,
                NormRule::Clip(bound) => (bound * 32_500.0 / 32_767.0 / length).min(1.0),
            };
            for (feature, value) in features.iter().zip(&scratch) {
                let real = value * shortened / f64::from(step);
                // Half a unit to the nearest, a whole one where the row is truncated, and a percent of long rows.
                prop_assert!((f64::from(*feature) - real).abs() < 256.0 + 0.011 * real.abs() + 2.0, "{} {}", feature, real);
            }
        }
    }

    #[test]
    fn numbers_beyond_their_range_are_read_as_its_border(
        rows in generate::rows(3, 2, 1..8),
        ends in prop::collection::vec((0..=CODE_MAX, 0..=CODE_MAX), 5),
        centre in prop::collection::vec(-3.0f64..3.0, 12),
        scale in prop::collection::vec(-5.0f64..5.0, 12),
        norm in prop_oneof![Just(NormRule::OwnNorm), (0.01f64..20.0).prop_map(NormRule::Clip)],
    ) {
        let schema = generate::schema(3, 2, PRIVACY);
        let plain = Encoding::new(Coding::of(&schema), centre, scale, norm);
        let ranges: Vec<CodeRange> =
            ends.into_iter().map(|(one, other)| CodeRange::new(one.min(other), one.max(other))).collect();
        // What the first row has is set aside.
        let aside = codes(plain.coding(), &schema, &rows[0]);
        let with_missing = |(range, aside): (&CodeRange, &u16)| {
            range.with_missing((*aside).min(CODE_MAX), u16::midpoint(range.low(), range.high()))
        };
        let within = plain.clone().within(ranges.iter().zip(&aside).map(with_missing).collect());
        let on_lattice = |encoding: &Encoding, codes: &[u16]| {
            let mut features = [0i16; 12];
            let step = encoding.encode_codes(codes, &mut [0.0; 12], &mut features);
            (features, step.to_bits())
        };
        for row in &rows {
            let codes = codes(plain.coding(), &schema, row);
            // Three numbers, then categories, which no range changes.
            let mut read = codes.clone();
            for ((code, range), aside) in read[..3].iter_mut().zip(&ranges).zip(&aside) {
                *code = if code == aside {
                    u16::midpoint(range.low(), range.high())
                } else {
                    (*code).max(range.low()).min(range.high())
                };
            }
            prop_assert_eq!(on_lattice(&within, &codes), on_lattice(&plain, &read));
        }
    }

    #[test]
    fn a_compact_row_is_the_whole_row_without_zeros(
        codes in (0..=CODE_MAX, 0..=80u16, 0..=3u16, 0..=64u16),
        scale in prop::collection::vec(prop_oneof![Just(0.0), -5.0f64..5.0], 1 + 1 + 81 + 4 + 65),
        centre in prop::collection::vec(-3.0f64..3.0, 1 + 1 + 81 + 4 + 65),
        is_centred in [any::<bool>(), any::<bool>()],
        norm in prop_oneof![Just(NormRule::OwnNorm), (0.01f64..20.0).prop_map(NormRule::Clip)],
        is_coarse: bool,
        (low, high) in (0..=20_000u16, 20_000..=CODE_MAX),
        is_missing: bool,
    ) {
        let listed = |count: u16| (0..count).map(|one| format!("\"{one}\"")).collect::<Vec<_>>().join(", ");
        let text = format!(
            "[privacy]\n{PRIVACY}\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n[features]\nx = {{ bounds = [0, 1] }}\n\
             wide = {{ categories = [{}] }}\nnarrow = {{ categories = [{}] }}\nother = {{ categories = [{}] }}\n",
            listed(80), listed(3), listed(64)
        );
        let coding = Coding::of(&reticent_core::schema::Schema::from_text(&text).expect("legal"));
        let mut centre = centre;
        if !is_centred[0] {
            centre[2..83].fill(0.0);
        }
        if !is_centred[1] {
            centre[87..].fill(0.0);
        }
        // The range of a category is not looked at.
        let range = CodeRange::new(low, high);
        let ranges = vec![if is_missing { range.with_missing(codes.0, 20_000) } else { range }; 4];
        let encoding = Encoding::new(coding, centre, scale, norm).coarse(is_coarse).within(ranges);
        let columns = encoding.coding().columns().len();
        let codes = [codes.0, codes.1, codes.2, codes.3];
        let mut whole = vec![0i16; columns];
        let whole_step = encoding.encode_codes(&codes, &mut vec![0.0; columns], &mut whole);

        let layout = encoding.layout();
        prop_assert_eq!(layout.chosen(), is_centred.iter().filter(|centred| !**centred).count());
        prop_assert_eq!(layout.columns(), columns);
        let (mut packed, mut places, mut chosen) =
            (vec![0i16; layout.packed().len()], vec![0u32; layout.chosen()], vec![0i16; layout.chosen()]);
        let mut scratch = vec![0.0; packed.len() + chosen.len()];
        let row = CompactRowMut { packed: &mut packed, chosen_columns: &mut places, chosen: &mut chosen };
        let step = encoding.encode_compact(&codes, &mut scratch, row);
        let mut found = vec![0i16; columns];
        let pairs = layout.packed().iter().zip(&packed).chain(places.iter().zip(&chosen));
        pairs.for_each(|(column, value)| found[*column as usize] = *value);
        prop_assert_eq!((found, step.to_bits()), (whole, whole_step.to_bits()));

        // The length that a row is divided by counts every coordinate, with a place of its own or not.
        let mut values = vec![0.0; columns];
        let read = if is_missing { 20_000 } else { codes[0].clamp(low, high) };
        (values[0], values[1]) = (1.0, f64::from(read) / f64::from(CODE_MAX));
        [2, 83, 87].iter().zip(&codes[1..]).for_each(|(first, code)| values[first + usize::from(*code)] = 1.0);
        let shapes = encoding.scale().iter().zip(encoding.centre());
        let square: f64 = values.iter().zip(shapes).map(|(value, (scale, centre))| (scale * (value - centre)).powi(2)).sum();
        if let (NormRule::OwnNorm, false) = (norm, is_coarse) {
            // A row of zeros has no length to be divided by.
            let length = square.sqrt();
            prop_assert!((f64::from(step) * 32_767.0 - length).abs() <= 1e-6 * length || length <= 0.0);
        }
    }
}

/// A table whose rows list numbers, between features that have slots.
fn listing(nonzeros_max: u32) -> Coding {
    let text = format!(
        "[privacy]\n{PRIVACY}\n[table]\nformat = \"libsvm\"\nnonzeros_max = {nonzeros_max}\n[target]\ncolumn = \"y\"\n\
         classes = [0, 1]\n[features]\n1 = {{ bounds = [0, 8] }}\n2 = {{ bounds = [-1, 1] }}\n3 = {{ bounds = [0, 2] }}\n\
         4 = {{ categories = [1, 2] }}\n5 = {{ bounds = [0, 4000] }}\n\"6..8\" = {{ bounds = [0, 4000], log = false }}\n"
    );
    Coding::of(&reticent_core::schema::Schema::from_text(&text).unwrap_or_else(|problems| panic!("{problems}")))
}

/// Features of the listed columns and their upper bounds: those from 0 on without a log column.
const LISTED: [(usize, f64); 5] = [(0, 8.0), (2, 2.0), (5, 4000.0), (6, 4000.0), (7, 4000.0)];

fn cells_of(numbers: [f64; 8]) -> Vec<Cell> {
    let cell = |(feature, number): (usize, f64)| {
        if feature == 3 { Cell::Category(number as u32) } else { Cell::Number(number) }
    };
    numbers.into_iter().enumerate().map(cell).collect()
}

#[test]
fn listed_columns_come_last_and_have_their_own_names() {
    let coding = listing(2);
    let names = ["(intercept)", "2", "4=other", "4=1", "4=2", "5", "symlog(5)", "1", "3", "6", "7", "8"];
    assert_eq!(coding.column_names(), names);
    let listed = coding.listed().expect("declared");
    assert_eq!((listed.first_column(), listed.most()), (7, 2));
    assert_eq!(listed.features(), LISTED.map(|(feature, _)| feature));
    assert_eq!((coding.slots(), coding.codes()), (4, 4 + 1 + 3 * 2));
    // More than there are is as many as there are.
    assert_eq!(listing(60_000).listed().expect("declared").most(), 5);
    // Without the others, the longest row has the intercept and two of the largest.
    let mut scale = vec![0.0; 12];
    (scale[0], scale[7], scale[9], scale[11]) = (1.0, 2.0, 3.0, 1.5);
    assert!((Encoding::largest_norm(&coding, &[0.0; 12], &scale) - 14f64.sqrt()).abs() < 1e-12);
    // With centres all are there, and two may be at their other end.
    let mut centre = vec![0.0; 12];
    (centre[7], centre[9], centre[11]) = (0.25, 0.5, 1.0);
    let expected = 1.0 + 4.0 * 0.5625 + 9.0 * 0.25 + 2.25;
    assert!((Encoding::largest_norm(&coding, &centre, &scale) - f64::sqrt(expected)).abs() < 1e-12);
}

/// A number with a logarithm has two slots: `round(32767 u)` of itself and of `sign(x) ln(1 + |x|)` between those of its bounds.
#[test]
fn a_number_and_its_logarithm_have_a_slot_each() {
    let text = format!(
        "[privacy]\n{PRIVACY}\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n[features]\nkind = {{ categories = [\"a\"] }}\n\
         age = {{ bounds = [10, 90] }}\ngain = {{ bounds = [-50, 5000], log = true }}\n"
    );
    let coding = Coding::of(&reticent_core::schema::Schema::from_text(&text).expect("legal"));
    let names = ["(intercept)", "kind=other", "kind=a", "age", "gain", "symlog(gain)"];
    assert_eq!(coding.column_names(), names);
    let features: Vec<usize> = coding.slot_maps().map(SlotMap::feature).collect();
    assert_eq!(features, [0, 1, 2, 2]);
    for (age, gain) in [(10.0, -50.0), (30.0, -3.0), (44.5, 0.0), (90.0, 700.0), (11.0, 5000.0)] {
        let cells = [Cell::Category(1), Cell::Number(age), Cell::Number(gain)];
        let logarithm = |number: f64| if number < 0.0 { -(1.0 - number).ln() } else { (1.0 + number).ln() };
        let units = [
            (age - 10.0) / 80.0,
            (gain + 50.0) / 5050.0,
            (logarithm(gain) - logarithm(-50.0)) / (logarithm(5000.0) - logarithm(-50.0)),
        ];
        let mut found = [0; 4];
        coding.encode_cells(&cells, &mut found);
        assert_eq!(found[0], 1);
        for (found, unit) in found[1..].iter().zip(units) {
            assert!((f64::from(*found) - f64::from(CODE_MAX) * unit).abs() <= 0.5 + 1e-9, "{found} {unit}");
        }
        for ((slot, map), found) in coding.slot_maps().enumerate().zip(found) {
            assert_eq!(coding.slot_code(slot, &cells[map.feature()]), found);
        }
        let mut columns = [7.0; 6];
        coding.raw_columns(&cells, &mut columns);
        assert_eq!(columns[..5], [1.0, 0.0, 1.0, age, gain]);
        assert!((columns[5] - logarithm(gain)).abs() < 1e-12);
    }
}

/// A cell is made by the schema, which knows no other category; if one came all the same, it would not mark another feature.
#[test]
fn an_unknown_category_is_other() {
    let coding = Coding::of(&generate::schema(0, 2, PRIVACY));
    for unknown in [4, 5, u32::from(u16::MAX), u32::MAX] {
        let cells = [Cell::Category(unknown), Cell::Category(3)];
        let (mut codes, mut columns) = ([7; 2], [7.0; 9]);
        coding.encode_cells(&cells, &mut codes);
        coding.raw_columns(&cells, &mut columns);
        assert_eq!((codes, columns), ([0, 3], [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]));
    }
}

/// Of a number and a category every row can be tried that can be the longest.
#[test]
fn the_longest_row_has_the_largest_norm() {
    let coding = Coding::of(&generate::schema(1, 1, PRIVACY));
    let centre = vec![0.25, 0.75, 0.5, 0.25, 0.125, 2.0];
    let scale = vec![1.0, -2.0, 3.0, 1.0, 0.5, 0.25];
    let largest = Encoding::largest_norm(&coding, &centre, &scale);
    let encoding = Encoding::new(coding, centre, scale, NormRule::OwnNorm);
    let mut scratch = [0.0; 6];
    let mut longest: f64 = 0.0;
    for number in [0, CODE_MAX] {
        for category in 0..4 {
            encoding.encode_codes(&[number, category], &mut scratch, &mut [0; 6]);
            longest = longest.max(scratch.iter().map(|value| value * value).sum::<f64>().sqrt());
        }
    }
    assert!((largest - longest).abs() < 1e-12, "{largest} {longest}");
}

#[test]
fn steps_are_those_of_the_norm_rule() {
    let of = |norm| Encoding::plain(Coding::of(&generate::schema(1, 0, PRIVACY)), norm);
    let clipped = of(NormRule::Clip(5.0));
    assert_eq!(clipped.common_step(), Some((5.0f64 / 32_767.0) as f32));
    assert!((clipped.contribution_step() - 5.0 / 32_767.0).abs() < 1e-18);
    let own = of(NormRule::OwnNorm);
    assert_eq!(own.common_step(), None);
    assert!((own.contribution_step() - 1.0 / 32_767.0).abs() < 1e-18);
    // A row at the bound is as long as it may be.
    let mut features = [7; 2];
    own.encode_codes(&[0], &mut [0.0; 2], &mut features);
    assert_eq!(features, [32_767, 0]);
    // A row without length stays so, under any rule, and its step is a length.
    for norm in [NormRule::OwnNorm, NormRule::Clip(5.0)] {
        let coding = Coding::of(&generate::schema(1, 0, PRIVACY));
        let nothing = Encoding::new(coding, vec![0.0; 2], vec![0.0; 2], norm);
        let mut features = [7; 2];
        let step = nothing.encode_codes(&[CODE_MAX], &mut [0.0; 2], &mut features);
        assert_eq!(features, [0; 2]);
        assert_eq!(step.to_bits(), (nothing.contribution_step() as f32).to_bits());
    }
}

#[test]
fn a_wide_category_costs_one_column() {
    let names: Vec<String> = (0..1000).map(|category| format!("\"c{category}\"")).collect();
    let text = format!(
        "[privacy]\n{PRIVACY}\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n[features]\nwide = {{ categories = [{}] }}\n",
        names.join(", ")
    );
    let schema = reticent_core::schema::Schema::from_text(&text).expect("legal");
    let coding = Coding::of(&schema);
    assert_eq!(coding.columns().len(), 1002);
    let norm = Encoding::largest_norm(&coding, &[0.0; 1002], &[1.0; 1002]);
    assert!((norm - 2f64.sqrt()).abs() < 1e-12, "intercept and one category, not a thousand");
}

/// What coordinates of 8 bits cost: of a row of a hundred like coordinates, an unbiased error below two percent of the row, and
/// less than one percent of its length.
#[test]
fn coarse_rows_are_near_fine_ones() {
    let schema = generate::schema(99, 0, PRIVACY);
    let fine = Encoding::new(Coding::of(&schema), vec![0.5; 100], vec![1.0; 100], NormRule::OwnNorm);
    let coarse = fine.clone().coarse(true);
    let (mut error, mut along, mut whole) = (0.0, 0.0, 0.0);
    let (mut truncated, mut stream) = (0, ChaCha20Rng::seed_from_u64(1));
    for _ in 0..1000 {
        let mut codes = [0u16; 99];
        for code in &mut codes {
            *code = (stream.next_u32() >> 17) as u16;
        }
        let rows = [&fine, &coarse].map(|encoding| {
            let mut features = [0i16; 100];
            encoding.encode_codes(&codes, &mut [0.0; 100], &mut features);
            features.map(f64::from)
        });
        let length = rows[1].iter().map(|value| value * value).sum::<f64>().sqrt();
        truncated += u32::from(length < 32_000.0);
        for (fine, coarse) in rows[0].iter().zip(&rows[1]) {
            error += (coarse - fine).powi(2);
            along += (coarse - fine) * fine;
            whole += fine * fine;
        }
    }
    let (error, shorter) = ((error / whole).sqrt(), -along / whole);
    assert!(error < 0.03 && shorter > 0.0 && shorter < 0.011, "{error} {shorter}");
    assert!(truncated < 10, "{truncated} of 1000");
}

/// Twelve like coordinates of 9384.8 steps are nearest to 9472, with a norm of 32812: the row is truncated instead.
#[test]
fn a_coarse_row_that_rounding_would_take_past_the_bound_is_truncated() {
    let schema = generate::schema(11, 0, PRIVACY);
    let encoding = Encoding::plain(Coding::of(&schema), NormRule::OwnNorm).coarse(true);
    let mut features = [0i16; 12];
    encoding.encode_codes(&[CODE_MAX; 11], &mut [0.0; 12], &mut features);
    assert_eq!(features, [9216; 12]);
    // Without the last column each has 9802.7 steps, which are nearest to 9728.
    let schema = generate::schema(10, 0, PRIVACY);
    let encoding = Encoding::plain(Coding::of(&schema), NormRule::OwnNorm).coarse(true);
    let mut features = [0i16; 11];
    encoding.encode_codes(&[CODE_MAX; 10], &mut [0.0; 11], &mut features);
    assert_eq!(features, [9728; 11]);
}

proptest! {
    #[test]
    fn a_row_lists_its_first_numbers_that_are_not_zero(
        numbers in prop::array::uniform8(prop_oneof![3 => Just(0.0), 2 => 0.0..1.0f64, 1 => Just(1.0)]),
        category in 0..=2u32,
        most in 1..=6u32,
        scale in prop::collection::vec(-3.0f64..3.0, 12),
        norm in prop_oneof![Just(NormRule::OwnNorm), (0.01f64..20.0).prop_map(NormRule::Clip)],
        is_centred: bool,
        is_coarse: bool,
    ) {
        let coding = listing(most);
        let mut numbers = numbers;
        LISTED.iter().for_each(|(feature, high)| numbers[*feature] *= high);
        numbers[3] = f64::from(category);
        let cells = cells_of(numbers);
        let mut codes = vec![u16::MAX; coding.codes()];
        coding.encode_cells(&cells, &mut codes);

        // The same row without a list: what counts of it is written down one by one.
        let code = |(feature, high): &(usize, f64)| (numbers[*feature] / high * f64::from(CODE_MAX) + 0.5) as u16;
        let mut room = most;
        let expected: Vec<u16> = LISTED
            .iter()
            .map(code)
            .map(|code| {
                let counts = code > 0 && room > 0;
                room -= u32::from(counts);
                if counts { code } else { 0 }
            })
            .collect();
        let mut columns = vec![f64::NAN; 12];
        coding.expand(&codes, &mut columns);
        let in_unit: Vec<f64> = expected.iter().map(|code| f64::from(*code) / f64::from(CODE_MAX)).collect();
        prop_assert_eq!(&columns[7..], &in_unit[..]);
        // A model scores every number that a row has.
        let mut raw = vec![f64::NAN; 12];
        coding.raw_columns(&cells, &mut raw);
        prop_assert_eq!(&raw[7..], &LISTED.map(|(feature, _)| numbers[feature])[..]);

        // The size is a number among the marginals, from 0 for the shortest to 1 for the longest.
        let (slots, list) = coding.slots_and_list(&codes);
        prop_assert_eq!(slots.len(), 4);
        let square: u64 = expected.iter().map(|code| u64::from(*code).pow(2)).sum();
        let size = f64::from(list[0]) / f64::from(CODE_MAX);
        if square < 1 << 15 {
            prop_assert_eq!(list[0], 0);
        } else {
            prop_assert!(((square as f64).log2() - (15.0 + 32.0 * size)).abs() < 0.09);
        }

        let mut centre = vec![0.25; 12];
        if !is_centred {
            centre[7..].fill(0.0);
        }
        let encoding = Encoding::new(coding, centre, scale, norm).coarse(is_coarse);
        let mut whole = vec![0i16; 12];
        let whole_step = encoding.encode_codes(&codes, &mut [0.0; 12], &mut whole);
        let layout = encoding.layout();
        let (in_places, chosen) = if is_centred { (12, 0) } else { (7, most.min(5) as usize) };
        prop_assert_eq!(layout.packed(), &(0..in_places).collect::<Vec<u32>>()[..]);
        prop_assert_eq!((layout.chosen(), layout.columns(), layout.has_list()), (chosen, 12, !is_centred));
        let (mut packed, mut places, mut chosen) = (vec![0i16; layout.packed().len()], vec![0u32; chosen], vec![0i16; chosen]);
        let row = CompactRowMut { packed: &mut packed, chosen_columns: &mut places, chosen: &mut chosen };
        let step = encoding.encode_compact(&codes, &mut vec![0.0; layout.packed().len() + layout.chosen()], row);
        let mut found = vec![0i16; 12];
        found[..packed.len()].copy_from_slice(&packed);
        places.iter().zip(&chosen).for_each(|(column, value)| found[*column as usize] += value);
        prop_assert_eq!((found, step.to_bits()), (whole, whole_step.to_bits()));
        // Ascending as far as they are used, and zeros after that: kernels stop there.
        let ascending = places.windows(2).position(|pair| pair[1] <= pair[0]).map_or(places.len(), |last| last + 1);
        prop_assert!(chosen[ascending..].iter().all(|value| *value == 0));
    }
}
