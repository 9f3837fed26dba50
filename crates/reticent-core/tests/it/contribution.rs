//! What a row, a label or a party adds is what the definitions say, computed here from the real numbers that integers stand for.

use std::sync::Arc;

use proptest::prelude::*;
use reticent_core::adjacency::PrivacyUnit;
use reticent_core::coding::{CODE_MAX, Coding};
use reticent_core::contribution::{CodedLabel, UNUSABLE_LABEL, dot};
use reticent_core::encoding::{Encoding, LatticeRow, NormRule};
use reticent_core::pass_weights::PassWeights;
use reticent_core::public_matrix::PublicMatrix;
use reticent_core::query::{Loss, Map, ProductTarget, QueryError, QueryShape, SumQuery, VoteRule};
use reticent_core::sum::PartialSum;
use reticent_core::target_window::TargetWindow;
use reticent_testkit::{generate, reveal};

const COLUMNS: usize = 1 + 2;
const FULL: f64 = 32767.0;
const COUNT: f64 = (1u64 << 20) as f64;

fn encoding() -> Arc<Encoding> {
    let schema = generate::schema(2, 0, "unit = \"row\"\nadjacency = \"add-remove\"");
    Arc::new(Encoding::plain(Coding::of(&schema), NormRule::OwnNorm))
}

fn query(map: Map, weights: &[[f64; COLUMNS]]) -> SumQuery {
    let shape = QueryShape::new(map, PrivacyUnit::Row, 1000).expect("small");
    let pass = if weights.is_empty() { PassWeights::none() } else { PassWeights::quantise(&weights.concat()) };
    SumQuery::new(shape, encoding(), pass).expect("columns fit")
}

/// A row within the bound, by its direction and length, and its label.
#[derive(Clone, Debug)]
struct Row {
    features: Vec<i16>,
    step: f32,
}

impl Row {
    fn lattice(&self) -> LatticeRow<'_> {
        LatticeRow { features: &self.features, step: self.step }
    }

    fn score(&self, weights: &[f64; COLUMNS]) -> f64 {
        let products = self.features.iter().zip(weights).map(|(feature, weight)| f64::from(*feature) * weight);
        products.sum::<f64>() * f64::from(self.step)
    }
}

fn rows() -> impl Strategy<Value = Row> {
    (prop::array::uniform3(-1.0..1.0f64), 0.1..1.0f64, 1e-5..2e-4f32).prop_map(|(direction, length, step)| {
        let norm = direction.iter().map(|value| value * value).sum::<f64>().sqrt().max(0.01);
        let features = direction.iter().map(|value| (value / norm * length * 32760.0) as i16).collect();
        Row { features, step }
    })
}

fn added(query: &SumQuery, row: &Row, label: CodedLabel) -> Vec<i128> {
    let mut sum = PartialSum::zero(query);
    sum.add_row(query, row.lattice(), label);
    reveal(sum)
}

/// Contributions that are a slope times the row, output after output: the slopes, in units of 1/2048.
fn slopes(query: &SumQuery, row: &Row, label: CodedLabel) -> Vec<f64> {
    let values = added(query, row, label);
    let square = row.features.iter().map(|feature| f64::from(*feature).powi(2)).sum::<f64>();
    let of_output = |values: &[i128]| {
        let along: f64 = values.iter().zip(&row.features).map(|(value, at)| *value as f64 * f64::from(*at)).sum();
        let slope = along / square;
        let exact =
            values.iter().zip(&row.features).all(|(value, at)| *value == slope.round() as i128 * i128::from(*at));
        assert!(exact, "{values:?} is no whole number of times {:?}", row.features);
        slope.round()
    };
    values.chunks_exact(COLUMNS).map(of_output).collect()
}

fn softmax(scores: [f64; 3]) -> [f64; 3] {
    let exponentials = scores.map(f64::exp);
    exponentials.map(|one| one / exponentials.iter().sum::<f64>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn slopes_are_the_derivatives_of_the_losses(row in rows(), weights in prop::array::uniform3(prop::array::uniform3(-2.0..2.0f64))) {
        let z = row.score(&weights[0]);
        let gradient = |loss| query(Map::Gradient { loss, columns: COLUMNS as u32 }, &weights[..1]);
        let (logistic, exponential) = (gradient(Loss::Logistic), gradient(Loss::TwoSidedExponential));
        let near = |found: f64, expected: f64| (found - 2048.0 * expected).abs() < 1.6;
        let probability = 1.0 / (1.0 + (-z).exp());
        prop_assert!(near(slopes(&logistic, &row, 0)[0], probability));
        prop_assert!(near(slopes(&logistic, &row, 1)[0], probability - 1.0));
        prop_assert!(near(slopes(&exponential, &row, 0)[0], z.exp().min(1.0)));
        prop_assert!(near(slopes(&exponential, &row, 1)[0], -(-z).exp().min(1.0)));

        // A number, in a part of its bounds.
        let window = TargetWindow::new(0.2, 0.5);
        let huber = gradient(Loss::Huber);
        let pass = PassWeights::quantise(&weights[0]).with_saturation(0.25).with_target_window(window);
        let huber = SumQuery::new(huber.shape().clone(), encoding(), pass).expect("columns fit");
        for label in [-32_767i16, -3000, 0, 12_345, 32_767] {
            let target = ((f64::from(label) / 32_767.0 - 0.2) / 0.5).clamp(-1.0, 1.0);
            // Pass weights are rounded to a grid of 2^-13, and the slope is four times as steep as the score.
            let (found, expected) = (slopes(&huber, &row, label)[0], ((z - target) / 0.25).clamp(-1.0, 1.0));
            prop_assert!((found - 2048.0 * expected).abs() < 6.0, "{}: {} {}", label, found, 2048.0 * expected);
        }

        // A bound that some rows keep and others pass.
        let clip = 1u32 << 24;
        let clipped = query(Map::ClippedGradient { columns: COLUMNS as u32, clip }, &weights[..1]);
        let norm = row.features.iter().map(|feature| f64::from(*feature).powi(2)).sum::<f64>().sqrt();
        let largest = f64::from(clip) / norm;
        for label in [0, 1] {
            let (whole, cut) = (slopes(&logistic, &row, label)[0], slopes(&clipped, &row, label)[0]);
            prop_assert!((cut - whole.clamp(-largest, largest)).abs() < 1.0 + 1e-9, "{} {} {}", cut, whole, largest);
        }

        let shares = softmax([0, 1, 2].map(|output| row.score(&weights[output])));
        let softmax = query(Map::SoftmaxGradient { classes: 3, columns: COLUMNS as u32 }, &weights);
        let bounded = query(Map::BoundedSoftmaxGradient { classes: 3, columns: COLUMNS as u32 }, &weights);
        let saturated = PassWeights::quantise(&weights.concat()).with_saturation(0.375);
        let saturated = SumQuery::new(bounded.shape().clone(), encoding(), saturated).expect("columns fit");
        let apart = |class: usize| -> [f64; 3] {
            std::array::from_fn(|output| shares[output] - if output == class { 1.0 } else { 0.0 })
        };
        let length = |slopes: [f64; 3]| slopes.iter().map(|slope| slope * slope).sum::<f64>().sqrt();
        let largest = (0..3).map(|class| length(apart(class))).fold(0.0, f64::max);
        for class in 0..3 {
            let expected = apart(class);
            for (found, expected) in slopes(&softmax, &row, class as i16).into_iter().zip(expected) {
                prop_assert!(near(found, expected), "{} {}", found, expected);
            }
            for (query, divisor) in [(&bounded, largest), (&saturated, length(expected).max(0.375 * largest))] {
                for (found, expected) in slopes(query, &row, class as i16).into_iter().zip(expected) {
                    prop_assert!(near(found, expected / divisor), "{} {}", found, expected / divisor);
                }
            }
        }
    }

    #[test]
    fn what_is_scored_is_counted_by_its_definition(row in rows(), weights in prop::array::uniform3(prop::array::uniform3(-2.0..2.0f64))) {
        let z = row.score(&weights[0]);
        // Weights have 16 bits: a score may lie on the other side of a border.
        prop_assume!(z.abs() > 1e-3);
        let one_score = |map| query(map, &weights[..1]);
        prop_assert_eq!(added(&query(Map::ClassCount { classes: 2 }, &[]), &row, 1), [0, 1 << 20]);
        for (label, is_right) in [(0, z < 0.0), (1, z > 0.0)] {
            let right = added(&one_score(Map::CorrectCount { classes: 2 }), &row, label);
            prop_assert_eq!(right, [1 << 20, i128::from(is_right) << 20]);
            let loss = added(&one_score(Map::LogLoss { classes: 2 }), &row, label)[0] as f64 / COUNT;
            let expected = if label == 1 { (-z).exp().ln_1p() } else { z.exp().ln_1p() };
            prop_assert!((loss - expected.min(4.0)).abs() < 1e-3, "{} {}", loss, expected);
        }
        let probability = 1.0 / (1.0 + (-z).exp());
        let bucket = probability * 8.0;
        if bucket.fract() > 0.01 && bucket.fract() < 0.99 {
            for label in [0i16, 1] {
                let mut expected = vec![0; 16];
                expected[8 * label as usize + bucket as usize] = 1 << 20;
                prop_assert_eq!(added(&one_score(Map::ScoreHistogram { buckets: 8 }), &row, label), expected);
            }
        }
        for label in [-32767i16, -5000, 0, 20_000] {
            let value = f64::from(label) / FULL;
            let expected = [1.0, (z.clamp(-1.0, 1.0) - value).powi(2) / 4.0, value, value * value];
            for (found, expected) in added(&one_score(Map::SquaredError), &row, label).into_iter().zip(expected) {
                prop_assert!((found as f64 / COUNT - expected).abs() < 1e-3, "{} {}", found, expected);
            }
        }

        let scores = [0, 1, 2].map(|output| row.score(&weights[output]));
        let mut ranked = [0, 1, 2];
        ranked.sort_by(|one, other| scores[*other].total_cmp(&scores[*one]));
        prop_assume!(scores[ranked[0]] - scores[ranked[1]] > 1e-3);
        for class in 0..3 {
            let right = added(&query(Map::CorrectCount { classes: 3 }, &weights), &row, class as i16);
            prop_assert_eq!(right, [1 << 20, i128::from(class == ranked[0]) << 20]);
            let loss = added(&query(Map::LogLoss { classes: 3 }, &weights), &row, class as i16)[0] as f64 / COUNT;
            let expected = -softmax(scores)[class].ln();
            prop_assert!((loss - expected.min(5.0)).abs() < 1e-3, "{} {}", loss, expected);
        }

        // The same from the row's exact products alone.
        for (map, scores) in [(Map::SquaredError, 1), (Map::LogLoss { classes: 3 }, 3)] {
            let query = query(map, &weights[..scores]);
            let dots: Vec<i64> =
                query.weights().weights().chunks_exact(COLUMNS).map(|weights| dot(weights, &row.features)).collect();
            let mut sum = PartialSum::zero(&query);
            sum.add_scored(&query, &dots, row.step, 1);
            prop_assert_eq!(reveal(sum), added(&query, &row, 1));
        }
    }

    #[test]
    fn products_are_those_of_row_and_label(row in rows(), label in -32767..=32767i16, norm in 0.2..3.0f64) {
        let gram = |target, [diagonal, off_diagonal, cross, square]: [u32; 4]| {
            query(Map::Gram { columns: COLUMNS as u32, target, diagonal, off_diagonal, cross, square }, &[])
        };
        let q: Vec<i128> = row.features.iter().map(|feature| i128::from(*feature)).collect();
        let expected = |label: i128, [diagonal, off_diagonal, cross, square]: [i128; 4]| {
            let triangle = [
                diagonal * q[0] * q[0], off_diagonal * q[0] * q[1], off_diagonal * q[0] * q[2],
                diagonal * q[1] * q[1], off_diagonal * q[1] * q[2], diagonal * q[2] * q[2],
            ];
            let with_label = q.iter().filter(|_| cross > 0).map(|one| cross * one * label);
            let of_label = (square > 0).then_some(square * label * label);
            triangle.into_iter().chain(with_label).chain(of_label).collect::<Vec<i128>>()
        };
        for multipliers in [[29, 41, 20, 3], [1, 2, 0, 0], [0, 0, 5, 1], [7, 1, 3, 0]] {
            let wide = multipliers.map(i128::from);
            let number = gram(ProductTarget::Number, multipliers);
            prop_assert_eq!(added(&number, &row, label), expected(i128::from(label), wide));
            let class = gram(ProductTarget::Class, multipliers);
            prop_assert_eq!(added(&class, &row, 0), expected(-32767, wide));
            prop_assert_eq!(added(&class, &row, 1), expected(32767, wide));
            // The label shrinks with the row, and is never enlarged.
            let over_norm = gram(ProductTarget::NumberOverNorm, multipliers);
            let stepped = Row { step: (norm / FULL) as f32, ..row.clone() };
            let shrunk = (f64::from(label) / (f64::from(stepped.step) * FULL).max(1.0)).round() as i128;
            prop_assert_eq!(added(&over_norm, &stepped, label), expected(shrunk, wide));
        }
    }
}

/// In a window of its bounds a target is another number, and beyond the window's borders it is the border.
#[test]
fn products_and_sums_read_a_target_in_its_window() {
    let window = TargetWindow::new(-0.5, 0.25);
    let row = Row { features: vec![20_000, -10_000, 5000], step: 1e-4 };
    let asked = |map, pass| {
        let shape = QueryShape::new(map, PrivacyUnit::Row, 1000).expect("small");
        SumQuery::new(shape, encoding(), pass)
    };
    let gram = Map::Gram {
        columns: COLUMNS as u32,
        target: ProductTarget::Number,
        diagonal: 0,
        off_diagonal: 0,
        cross: 3,
        square: 2,
    };
    for (label, read) in [(-16_384, 0), (-12_288, 16_383), (-8192, 32_767), (30_000, 32_767), (-32_767, -32_767)] {
        let found = added(&asked(gram.clone(), PassWeights::of_target(window)).expect("a number"), &row, label);
        let products = [20_000, -10_000, 5000].map(|feature| 3 * feature * read);
        assert_eq!(found[6..9], products, "{label}");
        assert_eq!(found[9], 2 * read * read);
        let sum = asked(Map::TargetSum, PassWeights::of_target(window)).expect("a number");
        assert_eq!(added(&sum, &row, label), [read]);
        assert_eq!(added(&asked(Map::TargetSum, PassWeights::none()).expect("bounds"), &row, label), [label.into()]);
        assert_eq!(added(&sum, &row, UNUSABLE_LABEL), [0]);
    }
    let classes = asked(Map::ClassCount { classes: 2 }, PassWeights::of_target(window));
    assert!(matches!(classes, Err(QueryError::Range(_))), "classes have no window");
}

/// A row that is too long is brought to the bound before it counts, and keeps its direction.
#[test]
fn a_row_beyond_the_bound_is_shortened() {
    let gram = Map::Gram {
        columns: COLUMNS as u32,
        target: ProductTarget::Number,
        diagonal: 1,
        off_diagonal: 1,
        cross: 0,
        square: 0,
    };
    let long = Row { features: vec![32767, -32767, i16::MIN + 1], step: 1.0 };
    let values = added(&query(gram, &[]), &long, 0);
    let square = values[0] + values[3] + values[5];
    assert!(square <= 32767 * 32767 && square > 32766 * 32766 - 3 * 32767, "{square}");
    assert_eq!((values[0], values[0]), (values[3], -values[1]));
}

/// Rows without a usable label add nothing; a class that is not declared is none.
#[test]
fn an_unusable_label_adds_nothing() {
    let row = Row { features: vec![20_000, -10_000, 5000], step: 1e-4 };
    let weights = [[1.0, -1.0, 0.5]; 3];
    let columns = COLUMNS as u32;
    let of_classes = [
        query(Map::ClassCount { classes: 2 }, &[]),
        query(Map::Gradient { loss: Loss::Logistic, columns }, &weights[..1]),
        query(Map::ClippedGradient { columns, clip: 1 << 24 }, &weights[..1]),
        query(Map::CorrectCount { classes: 2 }, &weights[..1]),
        query(Map::LogLoss { classes: 2 }, &weights[..1]),
        query(Map::ScoreHistogram { buckets: 4 }, &weights[..1]),
        query(Map::ExcessHits { classes: 2 }, &[weights[0], [2.0, -2.0, 1.0]]),
    ];
    for query in of_classes {
        for label in [2, -1, UNUSABLE_LABEL, i16::MAX] {
            assert!(added(&query, &row, label).iter().all(|value| *value == 0), "{:?}", query.shape().map());
        }
        assert!(added(&query, &row, 1).iter().any(|value| *value != 0), "{:?}", query.shape().map());
    }
    let squared_error = query(Map::SquaredError, &weights[..1]);
    assert_eq!(added(&squared_error, &row, UNUSABLE_LABEL), [0; 4]);
    let of_number = query(Map::Gradient { loss: Loss::Huber, columns }, &weights[..1]);
    assert_eq!(added(&of_number, &row, UNUSABLE_LABEL), [0; COLUMNS]);
    assert!(added(&of_number, &row, -1).iter().all(|value| *value != 0));
}

#[test]
fn numbers_are_counted_in_bins_of_equal_width() {
    let schema = generate::schema(2, 2, "unit = \"row\"\nadjacency = \"add-remove\"");
    let encoding = Arc::new(Encoding::plain(Coding::of(&schema), NormRule::OwnNorm));
    let shape = |numeric, bins| QueryShape::new(Map::NumberBins { numeric, bins }, PrivacyUnit::Row, 1000);
    for bins in [2u32, 16, 256] {
        let query = shape(2, bins).expect("small");
        let query = SumQuery::new(query, encoding.clone(), PassWeights::none()).expect("two numbers");
        let counted = |codes: [u16; 4], label| {
            let mut sum = PartialSum::zero(&query);
            sum.add_codes(&query, &codes, label);
            reveal(sum)
        };
        let width = 32_768 / bins as u16;
        for (code, bin) in [
            (0, 0),
            (width - 1, 0),
            (width, 1),
            (CODE_MAX - width, bins - 2),
            (CODE_MAX - width + 1, bins - 1),
            (u16::MAX, bins - 1),
        ] {
            // Whatever the class, and whatever the categories.
            for (label, codes) in [(0, [code, 5, 0, 3]), (-7, [code, 5, 9, 0])] {
                let mut expected = vec![0; 2 * bins as usize];
                expected[bin as usize] = 1 << 20;
                expected[bins as usize] = 1 << 20;
                assert_eq!(counted(codes, label), expected, "{code} of {bins}");
            }
        }
        assert!(counted([1, 2, 0, 0], UNUSABLE_LABEL).iter().all(|count| *count == 0));
    }
    for (numeric, bins) in [(0, 16), (2, 1), (2, 24), (2, 512)] {
        assert!(matches!(shape(numeric, bins), Err(QueryError::Range(_))), "{numeric} {bins}");
    }
    let other = SumQuery::new(shape(3, 16).expect("small"), encoding, PassWeights::none());
    assert!(matches!(other, Err(QueryError::Columns { expected: 3, found: 2 })));
}

/// Of 256 bins 256 labels each, the first of them without the label that stands for none; and in a window, by what it makes of them.
#[test]
fn a_target_is_counted_in_its_bin_of_a_window() {
    let schema = generate::schema(2, 2, "unit = \"row\"\nadjacency = \"add-remove\"");
    let encoding = Arc::new(Encoding::plain(Coding::of(&schema), NormRule::OwnNorm));
    let bins_in = |bins, window, label| {
        let shape = QueryShape::new(Map::TargetBins { bins }, PrivacyUnit::Row, 1000).expect("small");
        let query =
            SumQuery::new(shape, encoding.clone(), PassWeights::of_target(window)).expect("a number has a window");
        added(&query, &Row { features: vec![1000; 11], step: 1e-3 }, label)
    };
    let bounds = TargetWindow::BOUNDS;
    // From -24576 to -8192, moved into the middle.
    let window = TargetWindow::new(-0.5, 0.25);
    let (low, high) =
        (((window.centre() - window.half()) * 32_767.0) as i16, ((window.centre() + window.half()) * 32_767.0) as i16);
    for (bins, window, label, bin) in [
        (256, bounds, -32_767, 0),
        (256, bounds, -32_513, 0),
        (256, bounds, -32_512, 1),
        (256, bounds, -1, 127),
        (256, bounds, 0, 128),
        (256, bounds, 5, 128),
        (256, bounds, 32_511, 254),
        (256, bounds, 32_767, 255),
        (16, bounds, -28_673, 0),
        (16, bounds, -28_672, 1),
        (16, window, low, 0),
        (16, window, low + 1100, 1),
        (16, window, high, 15),
        (16, window, high - 1100, 14),
        (16, window, -32_767, 0),
        (16, window, 32_767, 15),
    ] {
        let mut expected = vec![0; bins as usize];
        expected[bin] = 1 << 20;
        assert_eq!(bins_in(bins, window, label), expected, "{label} of {bins}");
    }
    assert!(bins_in(16, window, UNUSABLE_LABEL).iter().all(|count| *count == 0));
    for bins in [0, 1, 24, 512] {
        let shape = QueryShape::new(Map::TargetBins { bins }, PrivacyUnit::Row, 1000);
        assert!(matches!(shape, Err(QueryError::Range(_))), "{bins}");
    }
}

#[test]
fn marginals_are_counts_and_moments() {
    let schema = generate::schema(2, 2, "unit = \"row\"\nadjacency = \"add-remove\"");
    let encoding = Arc::new(Encoding::plain(Coding::of(&schema), NormRule::OwnNorm));
    let added = |classes, codes: [u16; 4], label| {
        let map = Map::Marginals { classes, numeric: 2, categorical: 2, categories: 8 };
        let shape = QueryShape::new(map, PrivacyUnit::Row, 1000).expect("small");
        let query = SumQuery::new(shape, encoding.clone(), PassWeights::none()).expect("columns fit");
        let mut sum = PartialSum::zero(&query);
        sum.add_codes(&query, &codes, label);
        reveal(sum).into_iter().map(|value| value as f64 / COUNT).collect::<Vec<f64>>()
    };
    for (label, counts) in [(0, [1.0, 0.0]), (1, [0.0, 1.0])] {
        for codes in [[0, CODE_MAX, 0, 3], [12_345, 30_000, 3, 1], [16_384, 1, 2, 2]] {
            let found = added(2, codes, label);
            assert_eq!(found[..2], counts);
            for (slot, code) in codes[..2].iter().enumerate() {
                let u = f64::from(*code) / f64::from(CODE_MAX);
                let expected = [u - 0.5, (2.0 * u - 1.0).powi(2) - 0.5];
                for (found, expected) in found[2 + 2 * slot..].iter().zip(expected) {
                    assert!((found - expected).abs() < 4e-6, "{found} {expected}");
                }
            }
            let mut chosen = [0.0; 8];
            chosen[usize::from(codes[2])] = 1.0;
            chosen[4 + usize::from(codes[3])] = 1.0;
            assert_eq!(found[6..], chosen);
        }
    }
    // A category beyond the last counts as the last; a number without a class is counted, too.
    let numeric = added(0, [0, 0, 9, 0], 5);
    assert_eq!((numeric[0], &numeric[5..]), (1.0, &[0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0][..]));
    assert!(added(0, [0; 4], UNUSABLE_LABEL).iter().chain(&added(2, [0; 4], 2)).all(|value| *value == 0.0));
}

/// By hand: of the class that rises most, whether it is right less its first probability, and half of what that gains.
#[test]
fn excess_hits_are_those_beyond_the_first_model() {
    let row = Row { features: vec![1000, 2000, 0], step: 1e-3 };
    // The scores are 2 and, with the second weights, 0.5 or 3: the probability of class 1 is 0.8808, then 0.6225 or 0.9526.
    let of_two = |second: f64| query(Map::ExcessHits { classes: 2 }, &[[0.0, 1.0, 0.0], [second, 0.0, 0.0]]);
    let of_three = query(
        Map::ExcessHits { classes: 3 },
        &[[1.0, 0.0, 0.0], [0.0; 3], [0.0; 3], [1.0, 0.5, 0.0], [0.0, 1.5, 0.0], [-9.0, 0.0, 0.0]],
    );
    // First (1, 0, 0), then (2, 3, -9): class 1 rises most, from 0.2119 to 0.7311.
    let cases = [
        (of_two(0.5), [[1.0 - 0.1192, 0.1291], [-0.1192, 0.1291]]),
        (of_two(3.0), [[-0.8808, 0.0359], [1.0 - 0.8808, 0.0359]]),
        (of_three, [[-0.2119, 0.2596], [1.0 - 0.2119, 0.2596]]),
    ];
    for (query, expected) in cases {
        for (label, expected) in (0i16..).zip(expected) {
            let found = added(&query, &row, label);
            for (found, expected) in found.iter().zip(expected) {
                assert!((*found as f64 / COUNT - expected).abs() < 1e-4, "{found} {expected} {label}");
            }
        }
    }
    // Nothing rises: the first of several classes, or class 0 of two, and no gain.
    let same = query(Map::ExcessHits { classes: 2 }, &[[0.0; 3]; 2]);
    assert_eq!(added(&same, &row, 0), [1 << 19, 0]);
    assert_eq!(added(&same, &row, 1), [-(1 << 19), 0]);
}

/// By hand: hits of the class that rises most beyond the first model's probability, how that grows, and the weight.
#[test]
fn confidence_steps_are_those_of_the_class_that_rises_most() {
    let row = Row { features: vec![1000, 2000, 0], step: 1e-3 };
    let near = |query: &SumQuery, label: CodedLabel, expected: &[f64]| {
        let found = added(query, &row, label);
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((*found as f64 / COUNT - expected).abs() < 1e-4, "{found} {expected} {label}");
        }
    };
    // The change is 0.8: class 1, weight 0.4. Scores 0, 2 and 1: its probabilities are .5, .8808 and .7311.
    let models = [[0.4, 0.2, 0.0], [0.0; 3], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]];
    let two = query(Map::ConfidenceSteps { classes: 2, models: 3 }, &models);
    near(&two, 1, &[0.4 * 0.5, 0.4 * 0.3808, -0.4 * 0.1497]);
    near(&two, 0, &[-0.4 * 0.5, 0.4 * 0.3808, -0.4 * 0.1497]);
    near(&two, UNUSABLE_LABEL, &[0.0; 3]);
    // The other way, five times as far: class 0, weight 1, and so long a change is cut. Its probabilities are .0180 and .9820: with its own
    // label the contribution would have the length 1.3761.
    let far =
        query(Map::ConfidenceSteps { classes: 2, models: 2 }, &[[-4.0, 0.0, 0.0], [4.0, 0.0, 0.0], [-4.0, 0.0, 0.0]]);
    near(&far, 0, &[0.9820 / 1.3761, 0.9640 / 1.3761]);
    near(&far, 1, &[-0.0180 / 1.3761, 0.9640 / 1.3761]);
    // Of three classes the second rises, from a mean of 0.2 to 0.6: weight 0.4. Scores (1, 0, 0): it has .2119.
    let three = query(
        Map::ConfidenceSteps { classes: 3, models: 1 },
        &[[0.0; 3], [0.6, 0.0, 0.0], [0.0; 3], [1.0, 0.0, 0.0], [0.0; 3], [0.0; 3]],
    );
    near(&three, 1, &[0.4 * 0.7881]);
    near(&three, 2, &[-0.4 * 0.2119]);
}

/// By hand: residuals on the side that the change points to, how they fall from model to model, and the weight.
#[test]
fn residual_steps_are_those_on_the_side_of_the_change() {
    let row = Row { features: vec![1000, 2000, 0], step: 1e-3 };
    let of_weights = |weights: &[[f64; 3]], models: u32| {
        let shape = QueryShape::new(Map::ResidualSteps { models }, PrivacyUnit::Row, 1000).expect("small");
        let window = TargetWindow::new(0.25, 0.5);
        let weights = PassWeights::quantise(weights.as_flattened()).with_saturation(0.5).with_target_window(window);
        SumQuery::new(shape, encoding(), weights).expect("columns fit")
    };
    let near = |query: &SumQuery, number: f64, expected: &[f64]| {
        let found = added(query, &row, (number * 32_767.0).round() as CodedLabel);
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((*found as f64 / COUNT - expected).abs() < 1e-3, "{found} {expected} {number}");
        }
    };
    // The change is -0.4. Scores are 0, -0.2 and -0.8 of the window; a number of -0.05 in the bounds is -0.6 there. With c = .5 residuals
    // are -1 (of -1.2), -.8 and .4.
    let models = [[-0.4, 0.0, 0.0], [0.0; 3], [-0.2, 0.0, 0.0], [-0.8, 0.0, 0.0]];
    let three = of_weights(&models, 3);
    // Of all numbers -.5 of the window has the longest steps: (-1, -.4, -1.2).
    let longest = f64::sqrt(1.0 + 0.16 + 1.44);
    near(&three, -0.05, &[0.4 / longest, 0.4 * 0.2 / longest, 0.4 * 1.2 / longest]);
    near(&three, 0.9, &[-0.4 / longest, 0.0, 0.0]);
    assert_eq!(added(&three, &row, UNUSABLE_LABEL), [0; 3]);
    // A change of 3 weighs 1, and one model's residual is within 1 as it is: .25 of the bounds is the middle of the window.
    let one = of_weights(&[[3.0, 0.0, 0.0], [0.1, 0.0, 0.0]], 1);
    near(&one, 0.25, &[-0.2]);
    near(&one, -0.9, &[-1.0]);
}

/// Equal scores predict the first class, and one so large that its probability is 1 lies in the last bucket.
#[test]
fn scores_at_the_borders_have_their_place() {
    let row = Row { features: vec![32_000, 0, 0], step: 1e-3 };
    let undecided = query(Map::CorrectCount { classes: 2 }, &[[0.0; COLUMNS]]);
    assert_eq!(added(&undecided, &row, 0), [1 << 20, 1 << 20]);
    assert_eq!(added(&undecided, &row, 1), [1 << 20, 0]);
    let undecided = query(Map::CorrectCount { classes: 3 }, &[[0.0; COLUMNS]; 3]);
    for class in 0..3 {
        assert_eq!(added(&undecided, &row, class), [1 << 20, i128::from(class == 0) << 20]);
    }
    for (weight, bucket) in [(2.0, 7), (-2.0, 0)] {
        let sure = query(Map::ScoreHistogram { buckets: 8 }, &[[weight, 0.0, 0.0]]);
        let mut expected = vec![0; 16];
        expected[8 + bucket] = 1 << 20;
        assert_eq!(added(&sure, &row, 1), expected);
    }
}

#[test]
fn parties_add_their_weights_and_set_the_one_minimum() {
    let matrix = Arc::new(PublicMatrix::new(3, vec![1; 12]).expect("short rows"));
    let of = |map| SumQuery::of_matrix(QueryShape::new(map, PrivacyUnit::Row, 4).expect("small"), matrix.clone());
    let vectors = of(Map::PartyVectors { columns: 3, outputs: 1, penalty: 1, norm: 5000 }).expect("fits");
    let mut sum = PartialSum::zero(&vectors);
    sum.add_party_vector(&vectors, &[3000, -4000, 0]);
    sum.add_party_vector(&vectors, &[30_000, 0, -40_000]);
    // The first is as long as allowed; the second ten times as long, and a whole step is lost to its length.
    assert_eq!(reveal(sum), [3000 + 2999, -4000, -3999]);
    let minimum = of(Map::PartyMinimum { columns: 3, outputs: 1, rule: VoteRule::Soft, penalty: 1, parties: 9 });
    let minimum = minimum.expect("fits");
    let mut sum = PartialSum::zero(&minimum);
    sum.set_party_minimum(&minimum, &[7, -8, 9]);
    assert_eq!(reveal(sum), [7, -8, 9]);
}

/// What votes on all rows of a matrix, within a range, are asked for.
pub(super) fn of_votes(matrix: &Arc<PublicMatrix>, outputs: u32, label_low: i32, label_high: i32) -> SumQuery {
    let map = Map::MatrixProduct {
        columns: matrix.columns() as u32,
        outputs,
        target: ProductTarget::Class,
        label_low,
        label_high,
        rows: matrix.rows() as u64,
        row_norm_square: matrix.row_norm_square(),
        eigenvalue: matrix.eigenvalue_bound().expect("small"),
    };
    let shape = QueryShape::new(map, PrivacyUnit::Row, 1000).expect("small");
    SumQuery::of_matrix(shape, matrix.clone()).expect("within its own bounds")
}

/// Votes count as clamped to their range; with an output a class those of a row count up to the largest vote together.
#[test]
fn votes_are_added_times_the_public_rows() {
    let matrix = Arc::new(PublicMatrix::new(2, vec![1, 10, 100, 1000]).expect("short rows"));
    let sum = |outputs, label_low, votes: &[i32]| {
        let query = of_votes(&matrix, outputs, label_low, 5);
        let mut sum = PartialSum::zero(&query);
        sum.add_party(&query, votes);
        reveal(sum)
    };
    assert_eq!(sum(1, -4, &[-3, 2]), [200 - 3, 2000 - 30]);
    assert_eq!(sum(1, -4, &[i32::MIN, i32::MAX]), [500 - 4, 5000 - 40]);
    assert_eq!(sum(3, 0, &[1, 2, 1, 0, 0, 5]), [1, 10, 2, 20, 501, 5010]);
    assert_eq!(sum(3, 0, &[-7, 4, 3, 9, 9, 9]), [500, 5000, 4, 40, 1, 10]);
}

/// Votes of two classes that all agree reach as far from the middle as votes can, and are shortened to 17/20 of it; others count as they are.
#[test]
fn the_products_of_a_party_are_shortened_to_their_radius() {
    let matrix = Arc::new(PublicMatrix::new(1, vec![1000; 4]).expect("short rows"));
    let query = of_votes(&matrix, 1, 0, 40);
    let sum = |votes: [i32; 4]| {
        let mut sum = PartialSum::zero(&query);
        sum.add_party(&query, &votes);
        reveal(sum)[0]
    };
    assert_eq!(sum([20; 4]), 80_000);
    assert_eq!(sum([40, 0, 25, 13]), 78_000);
    for (votes, middle) in [([40; 4], 80_000 + 68_000), ([0; 4], 80_000 - 68_000), ([i32::MAX; 4], 80_000 + 68_000)] {
        assert!((sum(votes) - middle).abs() <= 1, "{}", sum(votes));
    }
}

/// A number times the public row, as its window has it; and one count in the bin of the bounds that it lies in.
#[test]
fn numbers_of_public_rows_are_read_in_their_window_squared_and_counted_by_bin() {
    let matrix = Arc::new(PublicMatrix::new(2, vec![7, -8, 100, 1000]).expect("short rows"));
    let map = |target| Map::MatrixProduct {
        columns: 2,
        outputs: 1,
        target,
        label_low: -32_767,
        label_high: 32_767,
        rows: 2,
        row_norm_square: matrix.row_norm_square(),
        eigenvalue: 0,
    };
    let asked = |map, window| {
        let shape = QueryShape::new(map, PrivacyUnit::Row, 2).expect("small");
        SumQuery::of_matrix_in(shape, matrix.clone(), window)
    };
    let sum = |query: &SumQuery, labels: [i16; 2]| {
        let mut sum = PartialSum::zero(query);
        labels.into_iter().enumerate().for_each(|(row, label)| sum.add_label(query, row, label));
        reveal(sum)
    };
    let window = TargetWindow::new(-0.5, 0.25);
    let query = asked(map(ProductTarget::Number), window).expect("numbers");
    let squares = asked(Map::LabelSquares, window).expect("numbers");
    for (label, read) in [(-16_384, 0), (-12_288, 16_383), (-8192, 32_767), (30_000, 32_767), (-32_767, -32_767)] {
        assert_eq!(sum(&query, [label, UNUSABLE_LABEL]), [7 * read, -8 * read], "{label}");
        assert_eq!(sum(&squares, [label, label]), [2 * read * read], "{label}");
        assert_eq!(sum(&squares, [label, UNUSABLE_LABEL]), [read * read], "{label}");
    }
    // A label that is not usable counts as the place that is named, here the window's upper border.
    let named = window.with_missing(-0.25);
    let query = asked(map(ProductTarget::Number), named).expect("numbers");
    assert_eq!(sum(&query, [-16_384, UNUSABLE_LABEL]), [100 * 32_767, 1000 * 32_767]);
    let squares = asked(Map::LabelSquares, named).expect("numbers");
    assert_eq!(sum(&squares, [-8192, UNUSABLE_LABEL]), [2 * 32_767 * 32_767]);
    assert!(matches!(asked(map(ProductTarget::Class), window), Err(QueryError::Range(_))), "classes have no window");
    assert!(matches!(asked(Map::LabelBins, TargetWindow::BOUNDS), Err(QueryError::Matrix)), "no longer asked");

    let bins = |bins, window| asked(Map::LabelsByBin { bins }, window).expect("any columns");
    for (bins, of, labels, counted) in [
        (256, TargetWindow::BOUNDS, [-32_767, -32_513], [0, 0]),
        (256, TargetWindow::BOUNDS, [-32_512, 32_767], [1, 255]),
        (256, TargetWindow::BOUNDS, [0, -1], [128, 127]),
        (16, TargetWindow::BOUNDS, [-28_672, -28_673], [1, 0]),
        // What lies beyond the window is in the bin at its end.
        (16, window, [-32_767, 32_767], [0, 15]),
        (16, window, [-16_384, -8200], [8, 15]),
    ]
    .map(|(count, of, labels, counted)| (bins(count, of), of, labels, counted))
    {
        let mut expected = vec![0; bins.shape().coordinates() as usize];
        counted.into_iter().for_each(|bin: usize| expected[bin] += 1i128 << 20);
        assert_eq!(sum(&bins, labels), expected, "{of:?} {labels:?}");
        assert!(sum(&bins, [UNUSABLE_LABEL; 2]).iter().all(|count| *count == 0));
    }
}

/// However the parts of a table are added up, the whole is the same.
#[test]
fn sums_are_joined_and_take_the_totals_of_a_kernel() {
    let query = query(Map::ClassCount { classes: 2 }, &[]);
    let of = |totals: [i64; 2]| {
        let mut sum = PartialSum::zero(&query);
        sum.add_kernel_totals(&totals);
        sum.add_kernel_totals(&[10, 20]);
        sum
    };
    let mut whole = of([1, -2]);
    whole.merge(of([i64::MAX, i64::MIN]));
    assert_eq!(reveal(whole), [21 + i128::from(i64::MAX), 38 + i128::from(i64::MIN)]);
}
