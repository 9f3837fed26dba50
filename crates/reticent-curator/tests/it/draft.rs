//! Drafts say nothing about the values of a private file, and are valid schemas for a public one.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::types::Int64Type;
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Int64Array, ListArray, StringArray, Time32MillisecondArray,
    TimestampMillisecondArray,
};
use parquet::arrow::ArrowWriter;
use reticent_core::schema::{FeatureKind, Schema, TargetKind};
use reticent_curator::draft::{DraftOptions, draft_schema};
use reticent_curator::source::SourceError;
use tempfile::TempDir;

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(TempDir::new().expect("a temporary directory"))
    }

    fn text(&self, text: &str) -> PathBuf {
        let path = self.0.path().join("table.csv");
        fs::write(&path, text).expect("a file can be written");
        path
    }

    fn parquet(&self) -> PathBuf {
        let list = ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(1)]), None]);
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("age", Arc::new(Int64Array::from(vec![17, 90]))),
            ("job", Arc::new(StringArray::from(vec!["cook", "clerk"]))),
            ("member", Arc::new(BooleanArray::from(vec![true, true]))),
            ("visits", Arc::new(list)),
            ("income", Arc::new(BooleanArray::from(vec![true, false]))),
        ];
        self.parquet_of(columns)
    }

    fn parquet_of(&self, columns: Vec<(&str, ArrayRef)>) -> PathBuf {
        let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
        let path = self.0.path().join("table.parquet");
        let file = fs::File::create(&path).expect("a file can be made");
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).expect("a Parquet schema");
        writer.write(&batch).expect("rows are written");
        writer.close().expect("a footer is written");
        path
    }
}

fn private(target: Option<&str>) -> DraftOptions {
    DraftOptions { target: target.map(str::to_owned), ..DraftOptions::default() }
}

fn public(target: &str) -> DraftOptions {
    DraftOptions { public: true, ..private(Some(target)) }
}

fn draft(path: &std::path::Path, options: &DraftOptions) -> String {
    draft_schema(path, options).unwrap_or_else(|error| panic!("{error}"))
}

fn checked(text: &str) -> Schema {
    Schema::from_text(text).unwrap_or_else(|problems| panic!("{problems}\n{text}"))
}

const TABLE: &str = "age,job,weight,zip code,note,same,void,income\n\
                     17,cook,12285,01234,a,5,,>50K\n\
                     90, clerk,1484705.5,98765,?,5,NA,<=50K\n\
                     33,other,99999,01234,\"say \"\"b\"\"\",5,?,<=50K\n";

#[test]
fn a_private_draft_depends_on_the_names_alone() {
    let files = Files::new();
    let options = private(Some("income"));
    let one = draft(&files.text(TABLE), &options);
    let header = &TABLE[..TABLE.find('\n').expect("a header") + 1];
    for rows in ["", "x", "secret,1,2\n\"open", "\u{0},\u{0}\n"] {
        let path = files.text(&format!("{header}{rows}"));
        assert_eq!(draft(&path, &options), one, "the values of the file show");
    }
    assert!(one.contains("\nage = {}  # fill in: bounds = [low, high] or categories = [\"a\", \"b\"]\n"), "{one}");
    assert!(one.contains("\n\"zip code\" = {}"), "{one}");
    assert!(one.contains("column = \"income\""), "{one}");
    assert!(!one.contains("\nincome = "), "the target is no feature: {one}");
    // What is left to fill in is a list of problems of a well-formed text.
    let problems = Schema::from_text(&one).expect_err("not filled in").0;
    assert_eq!(problems.len(), 8, "one for each of seven features and the target's classes or bounds: {problems:?}");
    assert!(problems.iter().all(|problem| problem.line.is_some()), "{problems:?}");
    let unknown_target = draft(&files.text(TABLE), &private(None));
    assert!(unknown_target.contains("column = \"\"  # fill in") && unknown_target.contains("\nincome = {}"));
}

#[test]
fn a_public_draft_is_a_schema_of_the_file() {
    let files = Files::new();
    let text = draft(&files.text(TABLE), &public("income"));
    assert!(text.starts_with("# Drafted from the values of \"table.csv\", which was declared public."), "{text}");
    let schema = checked(&text);
    let names: Vec<&str> = schema.features().iter().map(|feature| feature.name.as_str()).collect();
    assert_eq!(names, ["age", "job", "weight", "zip code", "note"], "{text}");
    let bounds = |place: usize| match &schema.features()[place].kind {
        FeatureKind::Numeric { low, high, .. } => format!("{low}..{high}"),
        FeatureKind::Categorical { categories, .. } => categories.join("|"),
        FeatureKind::Hashed { .. } => panic!("is never drafted"),
    };
    assert_eq!(bounds(0), "17..90");
    assert_eq!(bounds(1), "clerk|cook", "the word \"other\" is a bucket already");
    assert_eq!(bounds(2), "0..1500000");
    assert_eq!(bounds(3), "01234|98765", "a code is no number");
    assert_eq!(bounds(4), "a|say \"b\"");
    assert!(text.contains("# same has one value only") && text.contains("# void has no values"), "{text}");
    // Numbers of a row that differ in their last digits only leave no room between bounds.
    let numbered: String =
        (0..40).map(|row| format!("{},{},{}\n", 9_007_199_254_740_990u64 + 2 * row, row, row % 2)).collect();
    let text = draft(&files.text(&format!("id,age,class\n{numbered}")), &public("class"));
    assert!(
        text.contains("# id has numbers that are too large, or too close together")
            && checked(&text).features().len() == 1,
        "{text}"
    );
    let TargetKind::Classes(classes) = &schema.target().kind else { panic!("{text}") };
    assert_eq!(classes.iter().map(|class| class.name.as_str()).collect::<Vec<_>>(), ["<=50K", ">50K"]);
}

#[test]
fn whole_numbers_that_never_repeat_may_be_ids() {
    let files = Files::new();
    let hint = "# it has whole numbers of which no two are equal: delete this line if they are row numbers or ids";
    let rows: String = (0..500u32).map(|row| format!("{},{},{}.5,{}\n", 1000 + row, row % 60, row, row % 2)).collect();
    let text = draft(&files.text(&format!("id,age,dose,class\n{rows}")), &public("class"));
    assert!(text.contains(&format!("\nid = {{ bounds = [1000, 1500] }}  {hint}\n")), "{text}");
    assert_eq!((text.matches(hint).count(), checked(&text).features().len()), (1, 3), "{text}");
    // Above 2^53 not all of them have a float of their own.
    let rows: String = (1..=500u64).map(|row| format!("{},{}\n", (1u64 << 53) + row, row % 2)).collect();
    let text = draft(&files.text(&format!("id,class\n{rows}")), &public("class"));
    assert!(text.contains("# id has numbers that are too large") && !text.contains("one value"), "{text}");
}

/// They would be drafted as words, or as too many of them.
#[test]
fn numbers_in_a_foreign_spelling_are_named() {
    let files = Files::new();
    let row = |row: u32| format!("\"{row},5\";{}.{:03},00;{row} kg;{},5;{row},25\n", row % 7, row % 1000, row % 3);
    let rows: String = (0..200).map(row).collect();
    let options = DraftOptions { delimiter: Some(b';'), ..public("y") };
    let text = draft(&files.text(&format!("size;price;weight;grade;y\n{rows}")), &options);
    let comma = "has values that look like numbers with a decimal comma";
    for hint in [
        format!("# size {comma}"),
        format!("# price {comma}"),
        "# weight has values that look like numbers with something beside them".to_owned(),
        format!("grade = {{ categories = [\"0,5\", \"1,5\", \"2,5\"] }}  # it {comma}"),
        format!("column = \"y\"\n# The column {comma}"),
    ] {
        assert!(text.contains(&hint), "{hint}\n{text}");
    }
    assert!(!text.contains("hash_buckets"), "{text}");
}

/// Ages with a stray word stay numbers; spellings of one class become one; days are not hashed.
#[test]
fn stray_words_capitals_and_dates_are_what_they_seem() {
    let files = Files::new();
    let row = |row: u32| {
        let age = if row.is_multiple_of(20) { "unknown".to_owned() } else { row.to_string() };
        let (smoker, class) = (["N", "n", "Y"][row as usize % 3], ["No", "yes", "NO", "Yes"][row as usize % 4]);
        format!("{age};{:02}.{:02}.2023;{smoker};{class}\n", row % 28 + 1, row % 12 + 1)
    };
    let rows: String = (0..200).map(row).collect();
    let options = DraftOptions { delimiter: Some(b';'), ..public("y") };
    let text = draft(&files.text(&format!("age;visit;smoker;y\n{rows}")), &options);
    for expected in [
        "age = { bounds = [0, 200] }  # it has some values that are no numbers",
        "# visit has values that look like dates",
        "smoker = { categories = [\"N\", \"Y\", \"n\"] }  # it lists words that differ in capitals only",
        "# of two classes, the last is the positive one:\nclasses = [[\"NO\", \"No\"], [\"Yes\", \"yes\"]]  # it takes words",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    assert_eq!(checked(&text).features().len(), 2, "{text}");
}

#[test]
fn bounds_are_rounded_outward() {
    let files = Files::new();
    for (low, high, expected) in [
        ("0.123456", "0.987654", "[0.12, 0.99]"),
        ("-41.95", "-32.54", "[-42, -32.5]"),
        ("0", "99999", "[0, 100000]"),
        ("1990", "2020", "[1990, 2020]"),
        ("1000000.25", "1000000.5", "[1000000.25, 1000000.5]"),
        ("-1e-7", "2.55e-6", "[-1e-7, 2.6e-6]"),
        ("-1e300", "1e300", "[-1e100, 1e100]"),
        ("-1.5e22", "1e20", "[-1.5e22, 1e21]"),
    ] {
        let text = draft(&files.text(&format!("x,y\n{low},a\n{high},b\n")), &public("y"));
        assert!(text.contains(&format!("x = {{ bounds = {expected} }}")), "{low} {high}: {text}");
        let FeatureKind::Numeric { low: below, high: above, .. } = checked(&text).features()[0].kind else {
            panic!("a number")
        };
        let inside = |value: &str| value.parse::<f64>().expect("a number").clamp(-1e100, 1e100);
        assert!(below <= inside(low) && above >= inside(high), "{text}");
    }
}

#[test]
fn targets_are_classes_or_quantities() {
    let files = Files::new();
    let target = |values: &[&str]| {
        let rows: String = values.iter().enumerate().map(|(row, value)| format!("{row},{value}\n")).collect();
        draft(&files.text(&format!("x,y\n{rows}")), &public("y"))
    };
    assert!(target(&["10", "9", "9.0"]).contains("classes = [9, 10]"));
    assert!(target(&["true", "false", ""]).contains("classes = [\"false\", \"true\"]"));
    let order = "\n# of two classes, the last is the positive one:\nclasses = ";
    assert!(target(&["yes", "no"]).contains(&format!("{order}[\"no\", \"yes\"]\n")));
    assert!(target(&["0", "1"]).contains(order) && !target(&["0", "1", "2"]).contains(order));
    assert!(draft(&files.parquet(), &private(Some("income"))).contains(&format!("{order}[false, true]\n")));
    assert!(target(&["0.5", "2.5"]).contains("bounds = [0.5, 2.5]"));
    let many: Vec<String> = (0..30).map(|value| value.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(target(&many).contains("bounds = [0, 29]"));
    assert!(target(&["yes", "yes"]).contains("# The column has one value only."));
}

/// One zip code in twenty begins with a 0: read as numbers, these would be others, or beyond the bounds.
#[test]
fn codes_are_not_numbers_though_most_look_like_some() {
    let rows: String = (0..400).map(|row| format!("{:05},{}\n", 4_000 + 250 * row, row % 2)).collect();
    let folder = Files::new();
    let text = draft(&folder.text(&format!("zip,y\n{rows}")), &public("y"));
    assert!(text.contains("# zip has more than 50 different words"), "{text}");
}

#[test]
fn a_column_of_many_words_is_left_out_with_the_reason() {
    let files = Files::new();
    let rows = |count: usize| -> String { (0..count).map(|row| format!("w{row:02},{}\n", row % 2)).collect() };
    let text = draft(&files.text(&format!("word,y\n{}", rows(50))), &public("y"));
    let schema = checked(&text);
    let FeatureKind::Categorical { categories, .. } = &schema.features()[0].kind else { panic!("{text}") };
    assert_eq!(categories.len(), 50, "long lists are broken over lines and read back");
    let text = draft(&files.text(&format!("word,y\n{}", rows(51))), &public("y"));
    assert!(text.contains("\n# word has more than 50 different words"), "{text}");
}

#[test]
fn a_libsvm_file_is_not_quoted() {
    let files = Files::new();
    for text in ["-1 3:1 11:0.5\n+1 4:1\n", "yes 3:1\n"] {
        let refused = draft_schema(&files.text(text), &private(None)).expect_err("pairs are no names").to_string();
        assert!(refused.contains("libsvm") && !refused.contains("3:1"), "{refused}");
    }
}

#[test]
fn a_file_without_a_header_gets_names() {
    let files = Files::new();
    let path = files.text("39;State-gov;<=50K\n50;Private;>50K\n");
    let refused = draft_schema(&path, &private(None)).expect_err("a number among the names");
    assert!(matches!(refused, SourceError::HeaderDoubtful { .. }), "{refused}");
    assert!(!refused.to_string().contains("State"), "{refused}");
    let headerless = DraftOptions { header: Some(false), ..public("c3") };
    let schema = checked(&draft(&path, &headerless));
    assert!(!schema.table().header && schema.table().delimiter == b';');
    assert_eq!(schema.table().columns.as_deref(), Some(&["c1", "c2", "c3"].map(str::to_owned)[..]));
    let FeatureKind::Numeric { low, high, .. } = schema.features()[0].kind else { panic!("a number") };
    assert_eq!((low.to_bits(), high.to_bits()), (39f64.to_bits(), 50f64.to_bits()), "the first line is a row, too");
    let text = draft(&path, &DraftOptions { public: false, target: None, ..headerless });
    assert!(!text.contains("39") && !text.contains("State"), "{text}");
    // Numbers can be names when somebody says so.
    let text = draft(&files.text("1,2\n5,6\n"), &DraftOptions { header: Some(true), ..private(None) });
    assert!(text.contains("\n1 = {}") && text.contains("\n2 = {}"), "{text}");
}

#[test]
fn names_that_cannot_be_used_are_commented_out() {
    let files = Files::new();
    let text = draft(&files.text(",a,a,\"b\u{b}c = 1\",d.e,y\n1,2,3,4,5,6\n8,7,6,5,4,3\n"), &public("y"));
    let schema = checked(&text);
    assert_eq!(schema.features().len(), 1);
    assert_eq!(schema.features()[0].name, "d.e");
    assert!(text.contains("# column 1 has no name") && text.contains("# a is the name of several"), "{text}");
    assert!(text.contains("has a control character in its name"), "{text}");
}

#[test]
fn parquet_drafts_know_the_types() {
    let files = Files::new();
    let path = files.parquet();
    let text = draft(&path, &private(Some("income")));
    assert!(text.contains("\nage = {}  # fill in: bounds = [low, high]\n"), "{text}");
    assert!(text.contains("\njob = {}  # fill in: categories = [\"a\", \"b\"]\n"), "{text}");
    assert!(text.contains("\nmember = { categories = [false, true] }\n"), "{text}");
    assert!(text.contains("\n# visits has a type"), "{text}");
    assert!(text.contains("\nclasses = [false, true]\n"), "{text}");
    assert!(!text.contains("17") && !text.contains("cook"), "{text}");
    let schema = checked(&draft(&path, &public("income")));
    assert_eq!(schema.features().len(), 3, "a column of one word is still one");
}

/// Whoever fills in bounds of a date has to know what it counts as: years would put all rows beyond one end.
#[test]
fn drafts_say_what_dates_and_times_count() {
    let files = Files::new();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("born", Arc::new(Date32Array::from(vec![1]))),
        ("seen", Arc::new(TimestampMillisecondArray::from(vec![1]))),
        ("noon", Arc::new(Time32MillisecondArray::from(vec![1]))),
    ];
    let path = files.parquet_of(columns);
    let text = draft(&path, &private(Some("born")));
    assert!(
        text.contains("\n# fill in: bounds = [low, high], in days since 1970-01-01 (20000 is 2024-10-04)\n"),
        "{text}"
    );
    assert!(text.contains("\nseen = {}  # fill in: bounds = [low, high], in seconds since 1970-01-01 (17"), "{text}");
    assert!(text.contains("\nnoon = {}  # fill in: bounds = [low, high], in seconds since midnight\n"), "{text}");
}

#[test]
fn an_unknown_target_is_explained() {
    let files = Files::new();
    let error = draft_schema(&files.text(TABLE), &public("Income")).expect_err("no such column").to_string();
    assert!(error.contains("did you mean \"income\""), "{error}");
}

/// A delimiter that nobody thought of makes one column of all.
#[test]
fn a_table_of_one_column_is_doubted() {
    let files = Files::new();
    let note = "so that this is taken for a table of one column";
    for options in [private(None), DraftOptions { header: Some(false), ..private(None) }] {
        let text = draft(&files.text("age~job~income\n"), &options);
        assert!(text.contains(note) && text.contains("--delimiter"), "{text}");
        let named = draft(&files.text("age~job~income\n"), &DraftOptions { delimiter: Some(b'~'), ..options });
        assert!(!named.contains(note) && named.contains("delimiter = \"~\""), "{named}");
    }
    assert!(checked(&draft(&files.text("x,y\n1,a\n2,b\n"), &public("y"))).features().len() == 1);
    assert!(!draft(&files.text("x|y\n"), &private(None)).contains(note));
}
