//! Every set of instructions that the machine has gives the integers of core's scalar reference, in the worst cases too.

use proptest::prelude::*;
use reticent_core::coding::Coding;
use reticent_core::contribution::{CodedLabel, UNUSABLE_LABEL, class_of, class_scores, dot, largest_slope, score};
use reticent_core::encoding::{COARSE_STEPS, Encoding, LatticeRow, NormRule};
use reticent_core::pass_weights::PassWeights;
use reticent_core::query::Loss;
use reticent_core::schema::Schema;
use reticent_core::slope::{bounded_softmax_slopes, slope, softmax_slopes};
use reticent_core::target_window::TargetWindow;
use reticent_curator::kernel::{
    ColumnOrder, Coordinate, FLUSH_ROWS, GradientRule, Instructions, SoftmaxSlopes, add_gradient, add_products,
    add_softmax_gradient, find_largest_slopes, find_score_products,
};
use reticent_curator::lattice::{ChosenCoordinates, CompactBlock, LatticeBlock, Steps};

/// Lattice rows of some columns: of full length in one coordinate, spread over all, or short; mostly alike, as the worst sums
/// are those of rows that agree.
fn features(columns: usize, rows: usize) -> impl Strategy<Value = Vec<i16>> {
    let full = (0..columns, any::<bool>()).prop_map(move |(place, negative)| {
        let mut row = vec![0i16; columns];
        row[place] = if negative { -32767 } else { 32767 };
        row
    });
    let spread = (any::<u64>(), 0..4u32).prop_map(move |(signs, shorter)| {
        let size = (32767.0 / (columns as f64).sqrt()) as i16 >> shorter;
        (0..columns).map(|place| if signs >> (place % 64) & 1 == 0 { size } else { -size }).collect()
    });
    let random = prop::collection::vec(any::<i16>(), columns).prop_map(move |row| {
        let length = row.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt().max(32767.0);
        row.iter().map(|value| (f64::from(*value) * 32767.0 / length) as i16).collect()
    });
    let row = prop_oneof![full, spread, random];
    (prop::collection::vec(row, 1..4), prop::collection::vec(any::<(prop::sample::Index, bool)>(), rows)).prop_map(
        |(kinds, places)| {
            let rows = places.into_iter().flat_map(|(place, often)| {
                let kind: &Vec<i16> = if often { &kinds[0] } else { place.get(&kinds) };
                kind.clone()
            });
            rows.collect()
        },
    )
}

/// Categories of a wide block, "other" not counted.
const WIDE: usize = 64;

/// Columns by the schema: so many of numbers, with the intercept, and wide blocks.
fn encoding(packed: usize, blocks: usize) -> Encoding {
    let mut text =
        "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n[features]\n"
            .to_owned();
    (1..packed).for_each(|column| text.push_str(&format!("x{column} = {{ bounds = [0, 1] }}\n")));
    let categories: Vec<String> = (0..WIDE).map(|category| format!("\"{category}\"")).collect();
    for block in 0..blocks {
        text.push_str(&format!("k{block} = {{ categories = [{}] }}\n", categories.join(", ")));
    }
    Encoding::plain(Coding::of(&Schema::from_text(&text).expect("legal")), NormRule::OwnNorm)
}

struct Rows {
    encoding: Encoding,
    packed: Vec<i16>,
    chosen_columns: Vec<u32>,
    chosen: Vec<i16>,
    steps: Option<Vec<f32>>,
    labels: Vec<CodedLabel>,
    weights: Vec<f64>,
    /// All coordinates of all rows.
    whole: Vec<i16>,
}

impl Rows {
    fn columns(&self) -> usize {
        self.encoding.layout().columns()
    }

    fn steps(&self) -> Steps<'_> {
        self.steps.as_ref().map_or(Steps::Common(3.0e-5), |steps| Steps::Own(steps))
    }

    fn block(&self) -> CompactBlock<'_> {
        let layout = self.encoding.layout();
        CompactBlock {
            layout,
            packed: LatticeBlock {
                columns: layout.packed().len(),
                features: &self.packed,
                steps: self.steps(),
                labels: &self.labels,
            },
            chosen: ChosenCoordinates {
                per_row: layout.chosen(),
                has_list: layout.has_list(),
                columns: &self.chosen_columns,
                values: &self.chosen,
                by_column: None,
            },
        }
    }

    /// The nearest rows toward zero whose coordinates 8 bits keep, in those 8 bits.
    fn coarsened(mut self) -> (Self, Vec<i8>) {
        for value in self.packed.iter_mut().chain(&mut self.chosen).chain(&mut self.whole) {
            *value = *value / COARSE_STEPS * COARSE_STEPS;
        }
        let packed = self.packed.iter().map(|value| (value / COARSE_STEPS) as i8).collect();
        (self, packed)
    }

    /// The block of these rows with their packed coordinates in 8 bits.
    fn coarse_block<'a>(&'a self, features: &'a [i8]) -> CompactBlock<'a, i8> {
        let CompactBlock { layout, packed: LatticeBlock { columns, steps, labels, .. }, chosen } = self.block();
        CompactBlock { layout, packed: LatticeBlock { columns, features, steps, labels }, chosen }
    }

    fn each(&self) -> impl Iterator<Item = (LatticeRow<'_>, CodedLabel)> {
        let rows = self.whole.chunks_exact(self.columns()).zip(&self.labels).enumerate();
        rows.map(|(row, (features, label))| (LatticeRow { features, step: self.steps().of_row(row) }, *label))
    }
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:?}", (self.columns(), &self.whole, &self.steps, &self.labels, &self.weights))
    }
}

fn rows(classes: usize) -> impl Strategy<Value = Rows> {
    let packed = prop_oneof![
        2usize..40,
        prop::sample::select(vec![15usize, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65, 80, 96, 97, 112, 128, 129, 145])
    ];
    let count = prop_oneof![0usize..140, prop::sample::select(vec![31usize, 32, 33, 64, 65, 257])];
    // An interpreter takes a thousand times as long.
    let (packed_max, count_max) = if cfg!(miri) { (18, 34) } else { (usize::MAX, usize::MAX) };
    (packed, 0..4usize, count).prop_flat_map(move |(packed, blocks, count)| {
        let (packed, blocks, count) = (packed.min(packed_max), blocks.saturating_sub(1), count.min(count_max));
        let encoding = encoding(packed, blocks);
        // From 2^-20: proptest 1.12 panics where it draws below a start that is no multiple of the last place of the end.
        let step = prop_oneof![Just(1.0f32), f32::EPSILON * 8.0..1e-3];
        let label = prop_oneof![8 => 0..classes as i16, 1 => any::<i16>(), 1 => Just(i16::MIN)];
        let weight = prop_oneof![4 => -3.0f64..3.0, 1 => -1e3f64..1e3];
        (
            features(packed + blocks, count),
            prop::collection::vec(0..=WIDE, count * blocks),
            prop::option::of(prop::collection::vec(step, count)),
            prop::collection::vec(label, count),
            prop::collection::vec(weight, encoding.layout().columns() * classes),
        )
            .prop_map(move |(features, categories, steps, labels, weights)| {
                let rows = features.chunks_exact(packed + blocks);
                let mut whole = vec![0; count * encoding.layout().columns()];
                let (mut of_packed, mut chosen_columns, mut chosen) = (Vec::new(), Vec::new(), Vec::new());
                for (row, (features, whole)) in
                    rows.zip(whole.chunks_exact_mut(encoding.layout().columns())).enumerate()
                {
                    whole[..packed].copy_from_slice(&features[..packed]);
                    of_packed.extend_from_slice(&features[..packed]);
                    for block in 0..blocks {
                        let column = packed + block * (WIDE + 1) + categories[row * blocks + block];
                        whole[column] = features[packed + block];
                        chosen_columns.push(column as u32);
                        chosen.push(features[packed + block]);
                    }
                }
                let encoding = encoding.clone();
                Rows { encoding, packed: of_packed, chosen_columns, chosen, steps, labels, weights, whole }
            })
    })
}

/// On top of 7 in each place.
fn gradient_by_reference(rows: &Rows, weights: &PassWeights, loss: Loss, clip: Option<u32>) -> Vec<i64> {
    let mut expected = vec![7i64; rows.columns()];
    for (row, label) in rows.each() {
        let largest = clip.map_or(i32::MAX, |clip| largest_slope(row.features, clip));
        let slope = slope(loss, weights, score(weights, row), label).clamp(-largest, largest);
        for (total, feature) in expected.iter_mut().zip(row.features) {
            *total += i64::from(slope) * i64::from(*feature);
        }
    }
    expected
}

/// On top of -3 in each place.
fn softmax_gradient_by_reference(
    rows: &Rows,
    weights: &PassWeights,
    slopes: SoftmaxSlopes,
    classes: usize,
) -> Vec<i64> {
    let mut expected = vec![-3i64; rows.columns() * classes];
    let mut of_row = vec![0; classes];
    for (row, label) in rows.each() {
        let Some(class) = class_of(label, classes as u32) else { continue };
        let scores = class_scores(weights, row);
        match slopes {
            SoftmaxSlopes::Softmax => softmax_slopes(&scores, class, &mut of_row),
            SoftmaxSlopes::Bounded => bounded_softmax_slopes(&scores, class, weights.saturation(), &mut of_row),
        }
        for (totals, slope) in expected.chunks_exact_mut(rows.columns()).zip(&of_row) {
            for (total, feature) in totals.iter_mut().zip(row.features) {
                *total += i64::from(*slope) * i64::from(*feature);
            }
        }
    }
    expected
}

/// By each set of instructions and in both orders of the chosen coordinates, on top of 7 in each place.
fn gradients<T: Coordinate>(
    block: &CompactBlock<'_, T>,
    weights: &PassWeights,
    loss: Loss,
    clip: Option<u32>,
) -> Vec<(Instructions, Vec<i64>)> {
    let order = ColumnOrder::of(&block.chosen, block.layout.columns()).expect("few rows");
    let both = [None, Some(&order)].into_iter().map(|by_column| {
        let chosen = ChosenCoordinates { by_column, ..block.chosen };
        CompactBlock { chosen, ..*block }
    });
    let of_all = both.flat_map(|block| Instructions::available().into_iter().map(move |one| (block, one)));
    let found = of_all.map(|(block, instructions)| {
        let largest = clip.map(|clip| {
            let mut largest = vec![0; block.rows()];
            find_largest_slopes(instructions, clip, &block, &mut largest);
            largest
        });
        let mut found = vec![7i64; weights.weights().len()];
        add_gradient(instructions, GradientRule { loss, largest: largest.as_deref() }, weights, &block, &mut found);
        (instructions, found)
    });
    found.collect()
}

/// `XᵀX`, `Xᵀy` and `yᵀy` by the definition.
fn products_by_definition(columns: usize, features: &[i16], labels: &[i16]) -> Vec<i64> {
    let mut products = vec![0i128; columns * (columns + 1) / 2 + columns + 1];
    for (row, label) in features.chunks_exact(columns).zip(labels) {
        if *label == UNUSABLE_LABEL {
            continue;
        }
        let row: Vec<i128> = row.iter().map(|value| i128::from(*value)).collect();
        let label = i128::from(*label);
        let of_columns = (0..columns).flat_map(|one| (one..columns).map(move |other| (one, other)));
        let values = of_columns.map(|(one, other)| row[one] * row[other]).chain(row.iter().map(|value| value * label));
        for (product, value) in products.iter_mut().zip(values.chain([label * label])) {
            *product += value;
        }
    }
    products.into_iter().map(|product| i64::try_from(product).expect("few rows")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 150 }))]

    #[test]
    fn gradients_are_those_of_the_scalar_reference(
        rows in rows(2),
        clip in prop_oneof![Just(0u32), Just(1), Just(u32::MAX), 0..2048 * 32767u32, (0..11u32, 0..16u32).prop_map(|(slope, size)| 1 << (slope + size))],
    ) {
        let window = TargetWindow::new(-0.4, 0.3);
        let weights = PassWeights::quantise(&rows.weights[..rows.columns()]).with_saturation(0.4).with_target_window(window);
        for (loss, clip) in [
            (Loss::Logistic, None),
            (Loss::TwoSidedExponential, None),
            (Loss::Huber, None),
            (Loss::Logistic, Some(clip)),
            (Loss::TwoSidedExponential, Some(clip)),
        ] {
            let expected = gradient_by_reference(&rows, &weights, loss, clip);
            for (instructions, found) in gradients(&rows.block(), &weights, loss, clip) {
                prop_assert_eq!(&found, &expected, "{} {:?} {:?}", instructions.name(), loss, clip);
            }
        }
        let (rows, packed) = rows.coarsened();
        let block = rows.coarse_block(&packed);
        for (loss, clip) in [(Loss::TwoSidedExponential, None), (Loss::Huber, None), (Loss::Logistic, Some(clip))] {
            let expected = gradient_by_reference(&rows, &weights, loss, clip);
            for (instructions, found) in gradients(&block, &weights, loss, clip) {
                prop_assert_eq!(&found, &expected, "8 bits, {} {:?} {:?}", instructions.name(), loss, clip);
            }
        }
    }

    #[test]
    fn softmax_gradients_are_those_of_the_scalar_reference(
        (classes, rows) in (1usize..7).prop_flat_map(|classes| (Just(classes), rows(classes))),
        saturation in prop_oneof![Just(1.0), 0.0625..1.0],
    ) {
        let weights = PassWeights::quantise(&rows.weights).with_saturation(saturation);
        let all_slopes = [SoftmaxSlopes::Softmax, SoftmaxSlopes::Bounded];
        for slopes in all_slopes {
            let expected = softmax_gradient_by_reference(&rows, &weights, slopes, classes);
            for instructions in Instructions::available() {
                let mut found = vec![-3i64; expected.len()];
                add_softmax_gradient(instructions, slopes, &weights, &rows.block(), &mut found);
                prop_assert_eq!(&found, &expected, "{} {:?}", instructions.name(), slopes);
            }
        }
        let (rows, packed) = rows.coarsened();
        for slopes in all_slopes {
            let expected = softmax_gradient_by_reference(&rows, &weights, slopes, classes);
            for instructions in Instructions::available() {
                let mut found = vec![-3i64; expected.len()];
                add_softmax_gradient(instructions, slopes, &weights, &rows.coarse_block(&packed), &mut found);
                prop_assert_eq!(&found, &expected, "8 bits, {} {:?}", instructions.name(), slopes);
            }
        }
    }

    #[test]
    fn score_products_are_those_of_the_scalar_reference(rows in (1usize..7).prop_flat_map(rows)) {
        let weights = PassWeights::quantise(&rows.weights);
        let of_score = || weights.weights().chunks_exact(rows.columns());
        let mut expected: Vec<i64> = Vec::new();
        for (row, _) in rows.each() {
            expected.extend(of_score().map(|weights| dot(weights, row.features)));
        }
        for instructions in Instructions::available() {
            let mut found = vec![0; expected.len()];
            find_score_products(instructions, weights.weights(), &rows.block(), &mut found);
            let found: Vec<i64> = found.into_iter().map(i64::from).collect();
            prop_assert_eq!(&found, &expected, "{}", instructions.name());
        }
    }

    #[test]
    fn products_are_those_of_the_definition(rows in rows(2), scale in prop::sample::select(vec![1i16, 127, 128, 129, 32767])) {
        let labels: Vec<i16> = rows.labels.iter().map(|label| match *label {
            0 => -scale,
            1 => scale,
            other => other,
        }).collect();
        let expected = products_by_definition(rows.columns(), &rows.whole, &labels);
        for instructions in Instructions::available() {
            let mut found = vec![0; expected.len()];
            add_products(instructions, rows.columns(), &rows.whole, &labels, &mut found);
            prop_assert_eq!(&found, &expected, "{}", instructions.name());
        }
    }
}

/// Full-scale rows with full slopes: the worst case for the 32-bit lanes, at the flush and one row past it.
#[test]
fn full_scale_rows_do_not_overflow_a_lane() {
    let columns = 37;
    let encoding = encoding(columns, 0);
    for (place, row_sign, slope_sign) in
        [(0, 1i16, 1i64), (0, -1, 1), (0, 1, -1), (0, -1, -1), (36, 1, 1), (36, -1, -1)]
    {
        let mut weights = vec![0.0; columns];
        // A confident score, and the label that it gets wrong: slope 2048 times the sign, in every row.
        weights[place] = 1000.0 * f64::from(row_sign) * slope_sign as f64;
        let pass = PassWeights::quantise(&weights);
        for rows in [1, FLUSH_ROWS - 1, FLUSH_ROWS, FLUSH_ROWS + 1, 8 * FLUSH_ROWS + 1, 1000] {
            let mut features = vec![0i16; rows * columns];
            features[place..].iter_mut().step_by(columns).for_each(|feature| *feature = row_sign * 32767);
            let labels = vec![i16::from(slope_sign < 0); rows];
            let packed = LatticeBlock { columns, features: &features, steps: Steps::Common(1.0), labels: &labels };
            let chosen = ChosenCoordinates { per_row: 0, has_list: false, columns: &[], values: &[], by_column: None };
            let block = CompactBlock { layout: encoding.layout(), packed, chosen };
            let rule = GradientRule { loss: Loss::Logistic, largest: None };
            for instructions in Instructions::available() {
                let mut totals = vec![0i64; columns];
                add_gradient(instructions, rule, &pass, &block, &mut totals);
                let expected = 2048 * 32767 * rows as i64 * i64::from(row_sign) * slope_sign;
                assert_eq!(totals[place], expected, "{rows} rows, {}", instructions.name());
            }
        }
    }
    assert!(i64::from(i32::MAX) >= FLUSH_ROWS as i64 * 2048 * 32767, "the flush rule");
    assert!(i64::from(i32::MAX) < (FLUSH_ROWS as i64 + 1) * 2048 * 32767, "is tight");
}

/// Columns of one size in all rows, from so large that two rows fill 32 bits to so small that every row of a block fits.
#[test]
fn products_of_full_columns_do_not_overflow_a_lane() {
    assert!(2 * 32767i64 * 32767 <= i64::from(i32::MAX) && 3 * 32767i64 * 32767 > i64::from(i32::MAX), "two rows fit");
    for size in [32767i16, 32766, 23170, 18918, 11585, 8192, 8191, 5792, 4096, 2896, 2048, 1448, 1024, 511] {
        for (one, other) in [(1i16, 1i16), (1, -1), (-1, -1)] {
            for rows in [1, 2, 3, 4, 31, 32, 33, 63, 64, 65, 256, 257, 600] {
                let columns = 19;
                let mut features = vec![0i16; rows * columns];
                for row in features.chunks_exact_mut(columns) {
                    row[0] = one * size;
                    // Within the lattice: the norm of a row is at most 32767.
                    row[18] = if size <= 23170 { other * size } else { 0 };
                }
                let labels = vec![other * 32767; rows];
                let expected = products_by_definition(columns, &features, &labels);
                for instructions in Instructions::available() {
                    let mut found = vec![0; expected.len()];
                    add_products(instructions, columns, &features, &labels, &mut found);
                    assert_eq!(found, expected, "{size}, {rows} rows, {}", instructions.name());
                }
            }
        }
    }
}

/// Bytes without a sign are at most 255, and `2^15 · 255²` is just below `2^31`: the tile unit's rule, at it and one row past it.
#[test]
fn products_of_full_bytes_do_not_overflow_a_lane() {
    const { assert!((1 << 15) * 255i64 * 255 <= i32::MAX as i64 && (1 << 15) * 256i64 * 256 > i32::MAX as i64) };
    for [one, other] in [[255i16, 255], [-1, -1], [-1, 255], [-32513, 255], [-256, -256]] {
        for rows in [1 << 15, (1 << 15) + 1, (1 << 16) - 1] {
            let features = [one, other].repeat(rows);
            let labels = vec![other; rows];
            let expected = products_by_definition(2, &features, &labels);
            for instructions in Instructions::available() {
                let mut found = vec![0; expected.len()];
                add_products(instructions, 2, &features, &labels, &mut found);
                assert_eq!(found, expected, "{one}, {other}, {rows} rows, {}", instructions.name());
            }
        }
    }
}
