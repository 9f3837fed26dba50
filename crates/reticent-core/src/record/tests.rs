//! Every kind of value against every kind of column. Cells and labels have no `Debug`: the checks are equalities.

use proptest::prelude::*;

use super::*;

const SCHEMA: &str = r#"
[privacy]
unit = "row"
adjacency = "add-remove"

[table]
missing = ["", "?", "NA", "-999"]

[target]
column = "y"
classes = [["no", "n"], ["yes", "1.0"]]

[features]
age = { bounds = [-1000, 90], missing = 38, log = false }
job = { categories = ["clerk", "smith", "?"], missing = "smith" }
code = { categories = ["01", "1", "10"] }
flag = { categories = [0, 1] }
truth = { categories = [true, false], missing = true }
version = { categories = ["1.10", "1.1", "2.0"] }
post = { hash_buckets = 1024 }
"#;

fn schema() -> Schema {
    Schema::from_text(SCHEMA).expect("legal")
}

fn reader(name: &str) -> FeatureReader {
    let schema = schema();
    let place = schema.features().iter().position(|feature| feature.name == name).expect("declared");
    schema.feature_readers().swap_remove(place)
}

fn target(kind: &str) -> TargetReader {
    let text = SCHEMA.replace("classes = [[\"no\", \"n\"], [\"yes\", \"1.0\"]]", kind);
    Schema::from_text(&text).expect("legal").target_reader()
}

fn text(text: &str) -> RawValue<'_> {
    RawValue::Text(text.as_bytes())
}

#[test]
fn numbers_are_clamped_and_what_is_not_a_number_is_missing() {
    let age = reader("age");
    for (given, cell) in [
        ("17", 17.0),
        (" 17.5\t", 17.5),
        ("+17", 17.0),
        ("1.7e1", 17.0),
        (".5", 0.5),
        ("007", 7.0),
        ("-0", 0.0),
        ("91", 90.0),
        ("-1e9", -1000.0),
        ("1e999", 90.0),
        ("inf", 90.0),
        ("-Infinity", -1000.0),
        ("true", 1.0),
        ("False", 0.0),
        ("nan", 38.0),
        ("", 38.0),
        ("  ", 38.0),
        (" ? ", 38.0),
        ("-999", 38.0),
        ("-999.0", 38.0),
        ("-998", -998.0),
        ("1_7", 38.0),
        ("1,7", 38.0),
        ("0x11", 38.0),
        ("17 years", 38.0),
        ("seventeen", 38.0),
        ("１７", 38.0),
    ] {
        assert!(age.cell(text(given)) == Cell::Number(cell), "{given:?}");
    }
    assert!(age.cell(RawValue::Text(b"\xff17")) == Cell::Number(38.0), "not UTF-8");
    for (given, cell) in [
        (RawValue::Missing, 38.0),
        (RawValue::Number(f64::NAN), 38.0),
        (RawValue::Number(-f64::NAN), 38.0),
        (RawValue::Number(f64::INFINITY), 90.0),
        (RawValue::Number(f64::NEG_INFINITY), -1000.0),
        (RawValue::Number(1e300), 90.0),
        (RawValue::Number(-999.0), 38.0),
        (RawValue::Boolean(true), 1.0),
        (RawValue::Boolean(false), 0.0),
    ] {
        assert!(age.cell(given) == Cell::Number(cell), "expected {cell}");
    }
}

#[test]
fn a_code_among_the_spellings_of_missing_is_missing_as_spelt_only() {
    let text_of = SCHEMA.replace("\"-999\"", "\"099\", \"FALSE\"").replace("90]", "999]");
    let age = Schema::from_text(&text_of).expect("legal").feature_readers().swap_remove(0);
    for (given, cell) in [("099", 38.0), ("99", 99.0), ("0099", 99.0), ("false", 38.0), ("true", 1.0)] {
        assert!(age.cell(text(given)) == Cell::Number(cell), "{given:?}");
    }
    assert!(age.cell(RawValue::Number(99.0)) == Cell::Number(99.0));
    assert!(age.cell(RawValue::Boolean(false)) == Cell::Number(38.0));
    assert!(reader("age").cell(RawValue::Boolean(false)) == Cell::Number(0.0));
}

/// Readers of whole columns clamp a number themselves where this says that they may.
#[test]
fn plain_numbers_have_their_bounds() {
    assert_eq!(reader("age").bounds_of_plain_numbers(), None, "-999 stands for a missing value");
    let plain = SCHEMA.replace(", \"-999\"", "");
    let bounds: Vec<_> = Schema::from_text(&plain)
        .expect("legal")
        .feature_readers()
        .iter()
        .map(FeatureReader::bounds_of_plain_numbers)
        .collect();
    assert_eq!(bounds[..2], [Some((-1000.0, 90.0)), None]);
    assert_eq!(bounds[2..], [None; 5]);
}

#[test]
fn categories_are_found_by_spelling_then_number_then_boolean() {
    for (feature, given, index) in [
        ("job", "clerk", 1),
        ("job", " smith ", 2),
        ("job", "Clerk", 0),
        ("job", "other", 0),
        ("job", "NA", 2),
        ("job", "", 2),
        ("job", "-999.0", 2),
        ("job", "?", 3),
        ("code", "01", 1),
        ("code", "1", 2),
        ("code", "1.0", 2),
        ("code", "+1", 2),
        ("code", "001", 0),
        ("code", "010", 0),
        ("code", "1e1", 3),
        ("code", "NA", 0),
        ("flag", "0", 1),
        ("flag", "-0.0", 1),
        ("flag", "1.00", 2),
        ("flag", "2", 0),
        ("flag", "True", 2),
        ("flag", "nan", 0),
        ("truth", "TRUE", 1),
        ("truth", "false", 2),
        ("truth", "1", 1),
        ("truth", "0.0", 2),
        ("truth", "NA", 1),
        ("version", "1.10", 1),
        ("version", "1.1", 2),
        ("version", "1.100", 2),
        ("version", "2", 3),
    ] {
        assert!(reader(feature).cell(text(given)) == Cell::Category(index), "{feature}: {given:?}");
    }
    for (feature, given, index) in [
        ("job", RawValue::Missing, 2),
        ("job", RawValue::Number(f64::NAN), 2),
        ("job", RawValue::Number(-999.0), 2),
        ("job", RawValue::Number(3.0), 0),
        ("job", RawValue::Boolean(true), 0),
        ("job", RawValue::Text(b"\xff"), 0),
        ("job", RawValue::Text(b"clerk\0"), 0),
        ("code", RawValue::Number(1.0), 2),
        ("flag", RawValue::Boolean(true), 2),
        ("flag", RawValue::Number(-0.0), 1),
        ("flag", RawValue::Number(f64::INFINITY), 0),
        ("truth", RawValue::Boolean(false), 2),
        ("truth", RawValue::Number(1.0), 1),
        ("version", RawValue::Number(1.1), 2),
        ("version", RawValue::Number(2.0), 3),
    ] {
        assert!(reader(feature).cell(given) == Cell::Category(index), "{feature}: expected {index}");
    }
}

#[test]
fn labels_are_classes_or_unusable() {
    let reader = schema().target_reader();
    for (given, label) in [
        ("no", Label::Class(0)),
        (" n", Label::Class(0)),
        ("yes", Label::Class(1)),
        ("1", Label::Class(1)),
        ("true", Label::Class(1)),
        ("Yes", Label::Unusable),
        ("0", Label::Unusable),
        ("", Label::Unusable),
        ("?", Label::Unusable),
        ("other", Label::Unusable),
    ] {
        assert!(reader.label(text(given)) == label, "{given:?}");
    }
    assert!(reader.label(RawValue::Text(b"n\xff")) == Label::Unusable);
    assert!(reader.label(RawValue::Missing) == Label::Unusable);
    assert!(reader.label(RawValue::Number(f64::NAN)) == Label::Unusable);
    assert!(reader.label(RawValue::Number(1.0)) == Label::Class(1));

    let numbered = target("classes = [0, 1]");
    assert!(numbered.label(text("1.0")) == Label::Class(1));
    assert!(numbered.label(RawValue::Boolean(false)) == Label::Class(0));
    assert!(numbered.label(RawValue::Number(0.5)) == Label::Unusable);

    let odd = target("classes = [\"NA\", \"ZA\"]");
    assert!(odd.label(text("NA")) == Label::Class(0), "a declared class wins over a spelling of missing");
}

#[test]
fn a_usable_label_stands_for_a_number() {
    let labels = [Label::Class(0), Label::Class(7), Label::Value(-2.5), Label::Unusable];
    assert_eq!(labels.map(Label::number), [Some(0.0), Some(7.0), Some(-2.5), None]);
}

#[test]
fn a_bounded_target_is_clamped_or_unusable() {
    let reader = target("bounds = [-5, 10]");
    for (given, label) in [
        ("3.5", Label::Value(3.5)),
        ("11", Label::Value(10.0)),
        ("-inf", Label::Value(-5.0)),
        ("NA", Label::Unusable),
        ("-999", Label::Unusable),
        ("NaN", Label::Unusable),
        ("ten", Label::Unusable),
    ] {
        assert!(reader.label(text(given)) == label, "{given:?}");
    }
    assert!(reader.label(RawValue::Missing) == Label::Unusable);
    assert!(reader.label(RawValue::Boolean(true)) == Label::Value(1.0));
}

#[test]
fn every_declared_spelling_is_found_among_thousands() {
    // Alike words and numbers would show a hash that loses bits.
    let words: Vec<String> =
        (0..5000).map(|index| format!("category-{index}")).chain((0..5000).map(|n| n.to_string())).collect();
    let spellings = Spellings::new(words.iter().map(String::as_str).zip(0..), BooleanNumbers::Alike);
    for (word, index) in words.iter().zip(0..) {
        assert!(spellings.find(text(word)) == Some(index), "{word}");
        assert!(spellings.find(text(&format!("{word}x"))).is_none(), "{word}x");
    }
    assert!(spellings.find(RawValue::Number(4999.0)) == Some(9999));
}

#[test]
fn the_hash_spreads_short_words_over_its_low_bits() {
    let mut places = [0u32; 4096];
    for index in 0u32..4096 {
        let mut hasher = SpellingHasher::default();
        hasher.write(format!("c{index}").as_bytes());
        places[(hasher.finish() % 4096) as usize] += 1;
        let mut hasher = SpellingHasher::default();
        hasher.write_u64(f64::from(index).to_bits());
        places[(hasher.finish() % 4096) as usize] += 1;
    }
    // Two balls a bin on average; a random hash passes 12 in one of 4096 bins with probability 3e-3.
    assert!(places.iter().all(|count| *count <= 14), "worst {:?}", places.iter().max());
}

/// Buckets by `1 + int.from_bytes(hashlib.sha256(value).digest()[:8], "little") % 1024` in Python.
#[test]
fn hashed_values_stand_in_the_bucket_of_their_plainest_spelling() {
    let post = reader("post");
    let spelt = |given: &[&str], bucket: u32| {
        for one in given {
            assert!(post.cell(text(one)) == Cell::Category(bucket), "{one}");
        }
    };
    spelt(&["SW1A", " SW1A\t"], 719);
    spelt(&["1", "1.0", "+1", "true", "TRUE"], 620);
    spelt(&["01"], 404);
    spelt(&["0.5", ".5", "5e-1"], 979);
    spelt(&["\u{dc}"], 402);
    spelt(&["9007199254740991", "9007199254740991.0"], 1013);
    // From 2^53 on as it stands: floats would make one of these ids, and infinities of codes.
    spelt(&["9007199254740992"], 455);
    spelt(&["1234567890123456789"], 35);
    spelt(&["12e3456"], 797);
    spelt(&["1e16"], 412);
    spelt(&["", "?", " NA ", "-999", "-999.0"], 0);
    for (typed, bucket) in [
        (RawValue::Number(1.0), 620),
        (RawValue::Boolean(true), 620),
        (RawValue::Number(0.5), 979),
        (RawValue::Number(9_007_199_254_740_992.0), 455),
        (RawValue::Number(1_234_567_890_123_456_800.0), 639),
        (RawValue::Number(-999.0), 0),
        (RawValue::Number(f64::NAN), 0),
        (RawValue::Missing, 0),
    ] {
        assert!(post.cell(typed) == Cell::Category(bucket));
    }
    assert!(post.cell(RawValue::Number(-0.0)) == post.cell(text("0")));
    assert!(post.cell(text("-0.0")) == post.cell(text("0")));
}

proptest! {
    #[test]
    fn cells_stay_within_the_schema(bytes in prop::collection::vec(any::<u8>(), 0..12), number in any::<f64>()) {
        let schema = schema();
        for (feature, reader) in schema.features().iter().zip(schema.feature_readers()) {
            for raw in [RawValue::Text(&bytes), RawValue::Number(number), RawValue::Boolean(number > 0.0)] {
                let inside = match (reader.cell(raw), &feature.kind) {
                    (Cell::Number(number), FeatureKind::Numeric { low, high, .. }) => (low..=high).contains(&&number),
                    (Cell::Category(index), FeatureKind::Categorical { categories, .. }) => {
                        index as usize <= categories.len()
                    }
                    (Cell::Category(index), FeatureKind::Hashed { buckets }) => index as usize <= *buckets,
                    (Cell::Number(_), FeatureKind::Categorical { .. } | FeatureKind::Hashed { .. })
                    | (Cell::Category(_), FeatureKind::Numeric { .. }) => false,
                };
                prop_assert!(inside, "{}", feature.name);
            }
        }
    }

    #[test]
    fn a_number_reads_alike_from_text_and_from_a_typed_table(
        number in prop_oneof![
            any::<f64>(),
            (-1010i32..1010).prop_map(f64::from),
            (0i32..30).prop_map(|tenths| f64::from(tenths) / 10.0),
        ],
    ) {
        let (short, long) = (format!("{number:?}"), format!("{number}"));
        let schema = schema();
        for (feature, reader) in schema.features().iter().zip(schema.feature_readers()) {
            let typed = reader.cell(RawValue::Number(number));
            // From 2^53 on a text that is hashed stands for itself.
            if number.abs() < 9e15 || !matches!(feature.kind, FeatureKind::Hashed { .. }) {
                prop_assert!(reader.cell(text(&short)) == typed, "{} {short}", feature.name);
            }
            prop_assert!(reader.cell(text(&long)) == typed, "{} {long}", feature.name);
        }
        for reader in [schema.target_reader(), target("bounds = [-5, 10]")] {
            prop_assert!(reader.label(text(&short)) == reader.label(RawValue::Number(number)), "{short}");
        }
    }
}

/// Ids of many digits are told apart by text, and a float of a typed table finds the one that it is.
#[test]
fn whole_numbers_beyond_floats_equal_their_own_spelling_only() {
    let long = target("classes = [\"9007199254740992\", \"9007199254740993\", \"1e300\"]");
    let class = |raw| match long.label(raw) {
        Label::Class(class) => Some(class),
        Label::Value(_) | Label::Unusable => None,
    };
    for (given, expected) in [
        ("9007199254740992", Some(0)),
        ("9007199254740993", Some(1)),
        ("9007199254740994", None),
        ("9007199254740992.0", None),
        ("1e300", Some(2)),
        ("1e+300", None),
    ] {
        assert_eq!(class(text(given)), expected, "{given}");
    }
    assert_eq!(class(RawValue::Number(9_007_199_254_740_992.0)), Some(0));
    assert_eq!(class(RawValue::Number(1e300)), Some(2));
}

/// What a typed column can hold of a list is known by its type.
#[test]
fn spellings_are_counted_by_what_a_type_can_hold() {
    use ColumnValues::{Booleans, Decimals, Nothing, Numbers, Texts};
    const WHOLE: ColumnValues = ColumnValues::WholeNumbers { low: -128.0, high: 127.0 };
    for (kind, booleans, whole, numbers) in [
        (r#"classes = ["no", "yes"]"#, 0, 0, 0),
        (r#"classes = [["no", "n", "0"], ["yes", "0.5"]]"#, 1, 1, 2),
        ("classes = [0, 1, 2]", 2, 3, 3),
        ("classes = [false, true]", 2, 2, 2),
        (r#"classes = ["01", "02"]"#, 0, 0, 0),
    ] {
        let found = [Booleans, WHOLE, Numbers].map(|values| target(kind).classes_among(values));
        assert_eq!(found, [booleans, whole, numbers].map(Some), "{kind}");
    }
    let classes = target(r#"classes = [["1000", "abc"], [-129, "0.5"], ["2", "0.25", "127"], "inf"]"#);
    for (values, found) in [
        (Nothing, 0),
        (WHOLE, 1),
        (ColumnValues::WholeNumbers { low: 0.0, high: 65_535.0 }, 2),
        (Decimals { digits: -2 }, 3),
        (Decimals { digits: 1 }, 3),
        (Numbers, 4),
        (Texts { length: 4 }, 3),
        (Texts { length: 16 }, 0),
    ] {
        assert_eq!(classes.classes_among(values), Some(found), "{values:?}");
    }
    let decimals = target("classes = [0.5, 0.25, 0.125]");
    let found = [0, 1, 2, 3].map(|digits| decimals.classes_among(Decimals { digits }));
    assert_eq!(found, [0, 1, 2, 3].map(Some));
    assert_eq!(target("bounds = [0, 1]").classes_among(Numbers), None);
    let among = |name: &str| [Booleans, WHOLE, Numbers].map(|values| reader(name).categories_among(values));
    assert_eq!(among("job"), [Some(0); 3]);
    assert_eq!(among("truth"), [Some(2); 3]);
    assert_eq!(among("version"), [Some(0), Some(1), Some(2)]);
    assert_eq!(among("age"), [None; 3]);
    assert_eq!(among("post"), [None; 3]);
}
