//! What a person can get wrong in a schema, what she is told, and that every way of making one is checked.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

const ADULT: &str = r#"[privacy]
unit = "row"
adjacency = "add-remove"
rows = 40_000
row_norm = 3

[table]
header = false
columns = ["age", "workclass", "fnlwgt", "capital-gain", "smoker", "hours per week", "income"]
missing = ["", "?"]

[target]
column = "income"
classes = [["<=50K", "<=50K."], ">50K"]

[features]
age = { bounds = [17, 90], missing = 38 }
capital-gain = { bounds = [0, 99999] }
workclass = { categories = ["Private", "State-gov"], missing = "State-gov" }
smoker = { categories = [0, 1] }
"hours per week" = { bounds = [1, 99.5] }
"#;

fn adult() -> Schema {
    Schema::from_text(ADULT).expect("legal")
}

fn refusal(text: &str) -> String {
    Schema::from_text(text).expect_err("has problems").to_string()
}

/// The problems of a small legal schema after one replacement in its text.
fn refusal_after(from: &str, to: &str) -> String {
    let text = "[privacy]\nunit = \"row\"\nadjacency = \"replace\"\n[target]\ncolumn = \"y\"\nbounds = [0, 1]\n\
                [features]\na = { bounds = [0, 1] }\n";
    Schema::from_text(text).expect("legal before the replacement");
    assert!(text.contains(from), "{from:?}");
    refusal(&text.replace(from, to))
}

/// A file's column is found by its name without blanks, so two names of one column would make the label a feature, which is public
/// under label adjacency.
#[test]
fn blanks_make_no_other_column() {
    let told = |unit: &str, target: &str, feature: &str| {
        let text = format!(
            "[privacy]\nunit = {unit}\nadjacency = \"label\"\n[target]\ncolumn = \"{target}\"\nclasses = [0, 1]\n\
             [features]\nx = {{ bounds = [0, 1] }}\n\"{feature}\" = {{ bounds = [0, 1] }}\n"
        );
        Schema::from_text(&text).map_or_else(|problems| problems.to_string(), |_| String::new())
    };
    let of_patients = "{ column = \" patient\", rows_max = 2 }";
    assert_eq!(told(of_patients, "y", " z"), "");
    for (unit, target, feature, expected) in [
        ("\"row\"", "y", " y", "is the target; a feature must not give the answer away"),
        ("\"row\"", "y\\t", "y", "is the target"),
        ("\"row\"", "y", "x ", "is listed twice"),
        (of_patients, "y", "patient", "is the column of the privacy unit; a model must not learn"),
        (of_patients, "patient ", "z", "is the column of the privacy unit; it cannot be predicted"),
    ] {
        let told = told(unit, target, feature);
        assert!(told.contains(expected), "{unit} {target:?} {feature:?}: {told}");
    }
}

#[test]
fn a_schema_reads_as_declared() {
    let schema = adult();
    assert_eq!(schema.relation().to_string(), "row:add-remove");
    assert_eq!(schema.privacy().rows, Some(40_000));
    assert_eq!(schema.privacy().rows_max, 1 << 31);
    assert_eq!(schema.privacy().row_norm, Some(3.0));
    assert_eq!(schema.table().missing, ["", "?"]);
    let names: Vec<&str> = schema.features().iter().map(|feature| feature.name.as_str()).collect();
    assert_eq!(
        names,
        ["age", "capital-gain", "workclass", "smoker", "hours per week"],
        "features keep the order of the text"
    );
    assert_eq!(schema.target().column, "income");
    let low_high = Class { name: "<=50K".into(), spellings: vec!["<=50K".into(), "<=50K.".into()] };
    let high = Class { name: ">50K".into(), spellings: vec![">50K".into()] };
    assert_eq!(schema.target().kind, TargetKind::Classes(vec![low_high, high]));
    let kinds: Vec<&FeatureKind> = schema.features().iter().map(|feature| &feature.kind).collect();
    assert_eq!(*kinds[0], FeatureKind::Numeric { low: 17.0, high: 90.0, missing: 38.0, log: false });
    assert_eq!(*kinds[1], FeatureKind::Numeric { low: 0.0, high: 99999.0, missing: 49999.5, log: true });
    let workclass = vec!["Private".to_owned(), "State-gov".to_owned()];
    assert_eq!(*kinds[2], FeatureKind::Categorical { categories: workclass, missing: 2 });
    assert_eq!(*kinds[3], FeatureKind::Categorical { categories: vec!["0".into(), "1".into()], missing: 0 });
    assert_eq!(schema.encoded_columns(), 1 + 2 + 3 + 3 + 1);
}

#[test]
fn features_may_be_sections_of_their_own_and_the_unit_a_column() {
    let text = "[privacy]\nunit = { column = \"patient\", rows_max = 4 }\nadjacency = \"replace\"\n[target]\n\
                column = \"y\"\nbounds = [-0.0, 1]\n[features.zeta]\nbounds = [0, 1e3]\n[features.alpha]\n\
                categories = [true, 2.50, \"x\"]\nlog = false\n";
    assert_eq!(
        refusal(text),
        "the schema has 1 problem:\n  line 11: features.alpha.log: goes with bounds only; delete it"
    );
    let schema = Schema::from_text(&text.replace("log = false\n", "")).expect("legal");
    assert_eq!(schema.relation().to_string(), "patient<=4:replace");
    assert_eq!(schema.features().iter().map(|feature| feature.name.as_str()).collect::<Vec<_>>(), ["zeta", "alpha"]);
    let categories = ["true", "2.5", "x"].map(str::to_owned).to_vec();
    assert_eq!(schema.features()[1].kind, FeatureKind::Categorical { categories, missing: 0 });
    let TargetKind::Bounds { low, .. } = schema.target().kind else { panic!("declared with bounds") };
    assert!(low.is_sign_positive(), "equal schemas must have equal fingerprints");
}

#[test]
fn all_problems_are_told_at_once_each_with_its_line() {
    let text = r#"[privacy]
unit = { column = "patient", rows_max = 0 }
adjacency = "addremove"
rows = 50
rows_max = 40

[table]
header = false
delimiter = "\"\""

[target]
column = "income"
classes = ["rich", "rich"]
colour = "red"

[features]
age = { bounds = [90, 17] }
weight = {}
income = { bounds = [0, 1] }
patient = { categories = ["a"] }
height = { bounds = [0, 2], missing = 3 }
job = { categories = [
    "clerk",
    "other",
    " smith",
    "clerk",
], missing = "clark" }
smoker = { categoris = ["yes", "no"] }
"#;
    assert_eq!(
        refusal(text),
        r#"the schema has 16 problems:
  line 2: privacy.unit.rows_max: is 0; a unit must be allowed at least 1 row
  line 3: privacy.adjacency: "addremove" is not one of "add-remove", "replace", "label", "party"; did you mean "add-remove"?
  line 4: privacy.rows: 50 is above privacy.rows_max, 40; lower it or raise rows_max
  line 7: table.columns: is missing; a file without a header needs its columns named here, in order: columns = ["first", "second"]
  line 9: table.delimiter: "\"\"" is not one ASCII character; write for example ",", ";" or "\t"
  line 13: target.classes: class spelling "rich" is listed twice; keep one
  line 14: target.colour: is not known; write one of column, classes, bounds
  line 17: features.age.bounds: [90, 17] has the larger number first; write [17, 90]
  line 18: features.weight: is not filled in; write { bounds = [0, 100] } for a number, { categories = ["a", "b"] } for a category, or delete the line to leave the column out
  line 19: features.income: is the target; a feature must not give the answer away: delete this line
  line 20: features.patient: is the column of the privacy unit; a model must not learn who somebody is: delete this line
  line 21: features.height.missing: 3 is outside the bounds [0, 2]; choose a value within them
  line 22: features.job.categories: category "clerk" is listed twice; keep one
  line 25: features.job.categories[2]: " smith" would never match, because values are trimmed; write "smith"
  line 27: features.job.missing: "clark" is neither "other" nor one of the categories; did you mean "clerk"?
  line 28: features.smoker.categoris: is not known; did you mean "categories"?"#
    );
}

#[test]
fn a_listed_other_is_what_is_not_listed() {
    let schema = |feature: &str| {
        Schema::from_text(&format!(
            "[privacy]\nunit = \"row\"\nadjacency = \"replace\"\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n[features]\n\
             kind = {{ {feature} }}\n"
        ))
    };
    for (listed, without) in [
        (r#"categories = ["a", "other", "b"]"#, r#"categories = ["a", "b"]"#),
        (r#"categories = ["a", "other", "b"], missing = "a""#, r#"categories = ["a", "b"], missing = "a""#),
        (r#"categories = ["a", "other", "b"], missing = "b""#, r#"categories = ["a", "b"], missing = "b""#),
        (r#"categories = ["other", "a"], missing = "other""#, r#"categories = ["a"]"#),
    ] {
        let (listed, without) = (schema(listed).expect("legal"), schema(without).expect("legal"));
        assert_eq!(listed, without);
        assert_eq!(listed.fingerprint(), without.fingerprint());
    }
    // As parts `missing` may point at the listed category itself.
    let mut parts = SchemaParts::from(schema(r#"categories = ["a", "b"]"#).expect("legal"));
    let categories = ["a", "other", "b"].map(str::to_owned).to_vec();
    parts.features[0].kind = FeatureKind::Categorical { categories, missing: 2 };
    let kind = FeatureKind::Categorical { categories: vec!["a".into(), "b".into()], missing: 0 };
    assert_eq!(Schema::new(parts).expect("legal").features()[0].kind, kind);

    let told = |feature: &str| schema(feature).expect_err("nothing to learn from").to_string();
    assert!(told(r#"categories = ["other"]"#).contains("features.kind.categories: lists no value"));
    assert!(told(r#"categories = ["a", "other", "other"]"#).contains("category \"other\" is listed twice"));
}

#[test]
fn missing_sections_are_told_with_what_to_write() {
    assert_eq!(
        refusal(""),
        r#"the schema has 3 problems:
  privacy: is missing; say who is protected: [privacy] with unit = "row" and adjacency = "add-remove"
  target: is missing; say what to predict: [target] with column = "income" and classes = ["no", "yes"] (or bounds = [0, 100] for a number)
  features: is missing; name the columns to learn from: [features] with for example age = { bounds = [0, 100] }"#
    );
    assert_eq!(
        refusal("[privacy]\n[target]\n[features]\n[tabel]\n"),
        r#"the schema has 6 problems:
  line 1: privacy.unit: is missing; write unit = "row", or unit = { column = "patient_id", rows_max = 4 } when one person has several rows
  line 1: privacy.adjacency: is missing; write one of "add-remove", "replace", "label", "party", usually "add-remove"
  line 2: target.column: is missing; name the column to predict: column = "income"
  line 2: target: has neither classes nor bounds; write classes = ["no", "yes"] for a category, bounds = [0, 100] for a number
  line 3: features: names no feature; add a line for each column to learn from, for example age = { bounds = [0, 100] }, or write adjacency = "label" under [privacy] if this is the schema of labels for features that others have
  line 4: tabel: is not known; did you mean "table"?"#
    );
    let labels = "[privacy]\nunit = \"row\"\nadjacency = \"label\"\n[target]\ncolumn = \"y\"\nbounds = [0, 1]\n";
    assert!(refusal(labels).ends_with("whoever holds the labels alone, for `walr measure`, leaves [features] empty"));
}

#[test]
fn text_that_is_not_toml_is_one_problem_with_its_line() {
    let told = refusal("[privacy]\nunit = \"row\"\nadjacency = \n[target]\nalso = wrong\n");
    assert!(told.starts_with("the schema has 1 problem:\n  line 3: this is not TOML: "), "{told}");
    let told = refusal("[features]\nage = {}\nage = {}\n");
    assert!(told.contains("line 3: this is not TOML: duplicate key"), "{told}");
}

#[test]
fn each_rule_is_enforced() {
    for (from, to, told) in [
        ("unit = \"row\"", "unit = \"user\"", "line 2: privacy.unit: is the text \"user\"; write \"row\", or {"),
        ("unit = \"row\"", "unit = { column = \"p\" }", "line 2: privacy.unit.rows_max: is missing"),
        ("unit = \"row\"", "unit = { rows_max = 2 }", "line 2: privacy.unit.column: is missing"),
        (
            "unit = \"row\"",
            "unit = { column = \"y\", rows_max = 2 }",
            "line 5: target.column: is the column of the privacy",
        ),
        ("unit = \"row\"", "unit = { column = \"p\", rows_max = 5_000_000_000 }", "at most 4294967295 is possible"),
        ("unit = \"row\"", "unit = \"row\"\nrows = 0", "line 3: privacy.rows: is 0;"),
        ("unit = \"row\"", "unit = \"row\"\nrows = -4", "line 3: privacy.rows: is -4; write a whole number"),
        ("unit = \"row\"", "unit = \"row\"\nrows = 3_000_000_000", "above privacy.rows_max, 2147483648"),
        ("unit = \"row\"", "unit = \"row\"\nrows_max = 0", "line 3: privacy.rows_max: is 0; write a number between 1"),
        ("unit = \"row\"", "unit = \"row\"\nrows_max = 68719476737", "privacy.rows_max: is 68719476737;"),
        ("unit = \"row\"", "unit = \"row\"\nrow_norm = 0", "privacy.row_norm: is 0; write a number from 1e-6 to 1e100"),
        ("unit = \"row\"", "unit = \"row\"\nrow_norm = nan", "privacy.row_norm: is NaN;"),
        ("unit = \"row\"", "unit = \"row\"\nrow_norm = inf", "privacy.row_norm: is inf;"),
        ("\"replace\"", "3", "line 3: privacy.adjacency: is 3; write text in quotes"),
        ("[target]", "[table]\ncolumns = []\n[target]", "line 5: table.columns: is empty"),
        ("[target]", "[table]\ncolumns = [\"a\", \"y\", \"a\"]\n[target]", "column \"a\" is listed twice"),
        (
            "[target]",
            "[table]\ncolumns = [\"A\", \"y\"]\n[target]",
            "features.a: column \"a\" is not in table.columns; did you mean \"A\"?",
        ),
        ("[target]", "[table]\ncolumns = [\"a\"]\n[target]", "target.column: column \"y\" is not in table.columns"),
        (
            "[target]",
            "[table]\nheader = false\ncolumns = \"a,y\"\n[target]",
            "has 1 problem:\n  line 6: table.columns: is not a list",
        ),
        (
            "[target]",
            "[table]\nheader = \"no\"\n[target]",
            "line 5: table.header: is the text \"no\"; write true or false",
        ),
        ("[target]", "[table]\ndelimiter = \"é\"\n[target]", "table.delimiter: \"é\" is not one ASCII character"),
        ("[target]", "[table]\ndelimiter = \"1\"\n[target]", "table.delimiter: cannot be told from a value"),
        ("[target]", "[table]\ndelimiter = \"\\\"\"\n[target]", "table.delimiter: cannot be told from a value"),
        ("[target]", "[table]\nmissing = [\" ?\"]\n[target]", "table.missing[0]: \" ?\" would never match"),
        ("[target]", "table = 3\n[target]", "line 4: privacy.table: is not known"),
        ("bounds = [0, 1]\n[", "bounds = [0, 1]\nclasses = [0, 1]\n[", "has both classes and bounds"),
        ("bounds = [0, 1]\n[", "classes = [\"yes\"]\n[", "target.classes: has 1 class; a target needs at least two"),
        ("bounds = [0, 1]\n[", "classes = []\n[", "target.classes: has 0 classes; a target needs at least two"),
        ("bounds = [0, 1]\n[", "classes = [[], 1]\n[", "target.classes[0]: has no spelling"),
        ("bounds = [0, 1]\n[", "classes = [[\"\"], 1]\n[", "target.classes[0]: has an empty name"),
        ("bounds = [0, 1]\n[", "classes = [1, 1.0]\n[", "class spelling \"1\" is listed twice"),
        ("bounds = [0, 1]\n[", "classes = [[0, \"n\"], [\"n\", 1]]\n[", "class spelling \"n\" is listed twice"),
        ("bounds = [0, 1]\n[", "classes = [1979-05-27, 1]\n[", "target.classes[0]: is the date 1979-05-27;"),
        ("bounds = [0, 1]\n[", "bounds = [0, inf]\n[", "line 6: target.bounds: [0, inf] is not finite"),
        ("bounds = [0, 1]\n[", "bounds = [nan, 1]\n[", "line 6: target.bounds: [NaN, 1] is not finite"),
        ("bounds = [0, 1]\n[", "bounds = [0, 1, 2]\n[", "line 6: target.bounds: is not two numbers"),
        (
            "bounds = [0, 1]\n[",
            "bounds = [2020-01-01, 1]\n[",
            "line 6: target.bounds: has a date; write days since 1970-01-01",
        ),
        ("bounds = [0, 1]\n[", "bounds = [0, 1e200]\n[", "[0e0, 1e200] is beyond 1e100"),
        ("bounds = [0, 1]\n[", &format!("bounds = [0, 1{}]\n[", "0".repeat(101)), "[0e0, 1e101] is beyond 1e100"),
        ("{ bounds = [0, 1] }", "{ bounds = [1, 1] }", "line 8: features.a.bounds: [1, 1] leaves room for one value"),
        ("{ bounds = [0, 1] }", "{ bounds = [\"0\", 1] }", "line 8: features.a.bounds: is not two numbers"),
        ("{ bounds = [0, 1] }", "{ bounds = [0, 1], categories = [1] }", "features.a: has both bounds and categories"),
        ("{ bounds = [0, 1] }", "{ missing = 1 }", "features.a: has neither bounds nor categories"),
        ("{ bounds = [0, 1] }", "{ bounds = [0, 1], log = 1 }", "features.a.log: is 1; write true or false"),
        ("{ bounds = [0, 1] }", "{ bounds = [0, 1], missing = nan }", "features.a.missing: NaN is outside the bounds"),
        ("{ bounds = [0, 1] }", "{ categories = [] }", "features.a.categories: lists no value that gets"),
        (
            "{ bounds = [0, 1] }",
            "{ hash_buckets = 1 }",
            "features.a.hash_buckets: is 1; write a number between 2 and 65535",
        ),
        (
            "{ bounds = [0, 1] }",
            "{ hash_buckets = 70000 }",
            "features.a.hash_buckets: is 70000; write a number between",
        ),
        (
            "{ bounds = [0, 1] }",
            "{ hash_buckets = 9, bounds = [0, 1] }",
            "features.a: has both hash_buckets and bounds",
        ),
        (
            "{ bounds = [0, 1] }",
            "{ hash_buckets = 9, missing = 1 }",
            "features.a.missing: goes with bounds or categories only",
        ),
        ("{ bounds = [0, 1] }", "{ hash_bucket = 9 }", "did you mean \"hash_buckets\"?"),
        ("{ bounds = [0, 1] }", "{ categories = [inf] }", "features.a.categories[0]: is inf; write text in quotes"),
        ("{ bounds = [0, 1] }", "{ categories = \"b\" }", "features.a.categories: is the text \"b\"; write a list"),
        ("{ bounds = [0, 1] }", "[0, 1]", "features.a: is a list; write { bounds"),
        ("a = {", "y = {", "line 8: features.y: is the target"),
        ("a = {", "\"\" = {", "line 8: features.\"\": is an empty name"),
        ("a = {", "\"a\\u0007\" = {", "has a control character"),
    ] {
        let found = refusal_after(from, to);
        assert!(found.contains(told), "{to:?}\n  told: {found}\n  want: {told}");
    }
}

#[test]
fn what_stands_at_a_limit_is_legal() {
    let with = |change: &dyn Fn(&mut SchemaParts)| {
        let mut parts = SchemaParts::from(adult());
        change(&mut parts);
        Schema::new(parts)
    };
    for rows_max in [2, 3] {
        let unit = PrivacyUnit::Column { column: "fnlwgt".into(), rows_max };
        let read = with(&|parts| {
            (parts.privacy.rows, parts.privacy.rows_max) = (None, 2);
            parts.privacy.unit = unit.clone();
        });
        assert_eq!(read.is_ok(), rows_max == 2, "rows of a unit");
    }
    let with_bounds = |low: f64, high: f64| {
        with(&|parts| parts.features[0].kind = FeatureKind::Numeric { low, high, missing: high, log: false })
    };
    let with_categories = |count: usize| {
        let categories: Vec<String> = (0..count).map(|category| category.to_string()).collect();
        with(&|parts| {
            parts.features[2].kind = FeatureKind::Categorical { categories: categories.clone(), missing: 0 };
        })
    };
    let with_nonzeros = |most: u32| {
        let text = LIBSVM.replace("\"libsvm\"\n", &format!("\"libsvm\"\nnonzeros_max = {most}\n"));
        Schema::from_text(&text).map_err(|_| ())
    };
    let with_encoded = |spare: usize| {
        let kind = FeatureKind::Hashed { buckets: CATEGORIES_MAX };
        let of = |number: usize| Feature { name: format!("w{number}"), kind: kind.clone() };
        with(&|parts| {
            parts.table.columns = None;
            parts.table.header = true;
            parts.features.truncate(spare);
            parts.features.extend((0..16).map(of));
        })
    };
    for (legal, rule) in [
        (with(&|parts| parts.privacy.rows_max = 40_000).is_ok(), "as many rows as there may be"),
        (with_bounds(-BOUND_MAX, BOUND_MAX).is_ok(), "bounds"),
        (with_bounds(1e6, 1e6 * (1.0 + 2.0 * SPAN_MIN)).is_ok(), "a narrow span"),
        (with_categories(CATEGORIES_MAX).is_ok(), "categories"),
        (with_nonzeros(NONZEROS_MAX_LIMIT).is_ok(), "nonzeros"),
        (with_encoded(0).is_ok_and(|schema| schema.encoded_columns() == ENCODED_COLUMNS_MAX), "encoded columns"),
    ] {
        assert!(legal, "{rule}: at the limit");
    }
    for (refused, rule) in [
        (with(&|parts| parts.privacy.rows_max = 39_999).is_err(), "more rows than there may be"),
        (with_bounds(0.0, BOUND_MAX.next_up()).is_err(), "bounds"),
        (with_bounds(-BOUND_MAX.next_up(), 0.0).is_err(), "bounds"),
        (with_bounds(1e6, 1e6 * (1.0 + 0.5 * SPAN_MIN)).is_err(), "a narrow span"),
        (with_categories(CATEGORIES_MAX + 1).is_err(), "categories"),
        (with_nonzeros(NONZEROS_MAX_LIMIT + 1).is_err(), "nonzeros"),
        (with_encoded(1).is_err(), "encoded columns"),
    ] {
        assert!(refused, "{rule}: past the limit");
    }
}

#[test]
fn a_zero_has_no_sign() {
    let with_zeros = |low: f64, high: f64, missing: f64, target: (f64, f64)| {
        let mut parts = SchemaParts::from(adult());
        parts.features[0].kind = FeatureKind::Numeric { low, high, missing, log: false };
        parts.target.kind = TargetKind::Bounds { low: target.0, high: target.1 };
        Schema::new(parts).expect("legal").fingerprint().to_owned()
    };
    assert_eq!(with_zeros(0.0, 1.0, 0.0, (0.0, 1.0)), with_zeros(-0.0, 1.0, -0.0, (-0.0, 1.0)));
    assert_eq!(with_zeros(-1.0, 0.0, 0.0, (-1.0, 0.0)), with_zeros(-1.0, -0.0, -0.0, (-1.0, -0.0)));
}

#[test]
fn a_wide_span_gets_a_log_column_wherever_it_lies() {
    assert!(FeatureKind::log_default(-LOG_SPAN, LOG_SPAN));
    assert!(FeatureKind::log_default(0.0, 1000.0) && FeatureKind::log_default(1.0, 1000.0));
    assert!(!FeatureKind::log_default(2.0, 1000.0));
    assert!(!FeatureKind::log_default(LOG_SPAN, LOG_SPAN + 1.0));
}

#[test]
fn an_absurd_number_of_columns_is_refused() {
    // Sixteen features of 2^16 columns each, among others.
    let buckets = |features: usize| {
        let lines: Vec<String> =
            (1..features).map(|number| format!("\nw{number} = {{ hash_buckets = 65535 }}")).collect();
        format!("{{ hash_buckets = 65535 }}{}", lines.concat())
    };
    let adult = adult().to_text().replace("header = false\n", "").replace("columns = [", "# [");
    let text = |features: usize| adult.replace("{ bounds = [17, 90], missing = 38 }", &buckets(features));
    assert_eq!(Schema::from_text(&text(15)).expect("legal").encoded_columns(), 15 << 16 | 9);
    let told = refusal(&text(16));
    assert!(told.contains("features: encode to 1048585 columns; at most 1048576 are possible"), "{told}");
}

#[test]
fn more_classes_than_a_label_can_hold_are_refused() {
    let classes: Vec<String> = (0..=CLASSES_MAX).map(|class| class.to_string()).collect();
    let write = |count: usize| format!("classes = [{}]\n[", classes[..count].join(","));
    let told = refusal_after("bounds = [0, 1]\n[", &write(CLASSES_MAX + 1));
    assert!(told.contains("target.classes: has 32769 classes; at most 32768 are possible"), "{told}");
    let text = ADULT.replace("classes = [[\"<=50K\", \"<=50K.\"], \">50K\"]\n\n[", &write(CLASSES_MAX));
    let TargetKind::Classes(read) = &Schema::from_text(&text).expect("legal").target().kind.clone() else {
        panic!("declared with classes")
    };
    assert_eq!(read.len(), CLASSES_MAX);
}

#[test]
fn an_unfilled_feature_that_is_also_the_target_is_told_both() {
    let told = refusal_after("a = { bounds = [0, 1] }", "y = {}");
    assert!(
        told.contains("has 2 problems") && told.contains("not filled in") && told.contains("is the target"),
        "{told}"
    );
}

#[test]
fn json_goes_through_the_same_checks() {
    let json = serde_json::to_string(&adult()).expect("plain data");
    let again: Schema = serde_json::from_str(&json).expect("checked when written");
    assert_eq!(again, adult());
    for (from, to, told) in [
        ("\"low\":17.0", "\"low\":170.0", "features.age.bounds: [170, 90] has the larger number first"),
        ("\"rows\":40000", "\"rows\":0", "privacy.rows: is 0"),
        ("\"missing\":2", "\"missing\":3", "features.workclass.missing: 3 is past the last category, 2"),
        ("\"name\":\"<=50K\"", "\"name\":\"poor\"", "target.classes[0]: has no spelling"),
        ("\"name\":\"smoker\"", "\"name\":\"age\"", "features.age: is listed twice"),
        ("\"header\":false", "\"header\":false,\"skip\":1", "unknown field `skip`"),
        ("\"rows_max\":2147483648", "\"rows_max\":null", "invalid type: null"),
    ] {
        assert!(json.contains(from), "{from} in {json}");
        let refused = serde_json::from_str::<Schema>(&json.replacen(from, to, 1)).expect_err(to).to_string();
        assert!(refused.contains(told), "{refused}");
    }
}

#[test]
fn the_fingerprint_is_fixed_and_moves_with_every_part() {
    let base = adult();
    // Computed apart from this code (Python, struct and hashlib).
    // A changed number here orphans every ledger and model that names a schema: bump the serialisation's version.
    assert_eq!(base.fingerprint(), "67b4fbfc40d82678a6957a53e3a7ad1b66ecf2b74a8de5ca8ccc99ba28b0d115");
    let mut seen = HashSet::from([base.fingerprint()]);
    let mut moved = |change: &dyn Fn(&mut SchemaParts)| {
        let mut parts = SchemaParts::from(base.clone());
        change(&mut parts);
        assert!(seen.insert(Schema::new(parts).expect("legal").fingerprint()));
    };
    moved(&|parts| parts.privacy.unit = PrivacyUnit::Column { column: "fnlwgt".into(), rows_max: 2 });
    moved(&|parts| parts.privacy.adjacency = Adjacency::Label);
    moved(&|parts| parts.privacy.rows = None);
    moved(&|parts| parts.privacy.rows_max = 50_000);
    moved(&|parts| parts.privacy.row_norm = None);
    moved(&|parts| parts.table.header = true);
    let libsvm = Schema::from_text(LIBSVM).expect("legal");
    let delimited = Schema::new(SchemaParts { table: TableFormat::default(), ..SchemaParts::from(libsvm.clone()) });
    assert_ne!(libsvm.fingerprint(), delimited.expect("legal").fingerprint());
    moved(&|parts| parts.table.columns.as_mut().expect("declared").swap(0, 1));
    moved(&|parts| parts.table.delimiter = b';');
    moved(&|parts| parts.table.missing.truncate(1));
    moved(&|parts| parts.target.kind = TargetKind::Bounds { low: 0.0, high: 1.0 });
    moved(&|parts| parts.target.column = "fnlwgt".into());
    moved(&|parts| parts.features.swap(0, 1));
    moved(&|parts| parts.features.truncate(4));
    moved(&|parts| parts.features[0].name = "fnlwgt".into());
    moved(&|parts| parts.features[2].kind = FeatureKind::Categorical { categories: vec!["P".into()], missing: 0 });
    moved(&|parts| parts.features[2].kind = FeatureKind::Hashed { buckets: 2 });
    moved(&|parts| parts.features[2].kind = FeatureKind::Hashed { buckets: 3 });
    moved(&|parts| parts.features[0].kind = FeatureKind::Numeric { low: 17.0, high: 90.0, missing: 38.0, log: true });
}

const LIBSVM: &str = r#"[privacy]
unit = { column = "qid", rows_max = 3 }
adjacency = "add-remove"

[table]
format = "libsvm"

[target]
column = "label"
classes = [-1, 1]

[features]
"1..123" = { bounds = [0, 1] }
"7000..7001" = { hash_buckets = 64 }
0 = { bounds = [0, 1] }
"#;

#[test]
fn a_range_of_indices_stands_for_each() {
    let schema = Schema::from_text(LIBSVM).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(schema.features().len(), 126);
    let names: Vec<&str> = schema.features().iter().map(|feature| feature.name.as_str()).collect();
    assert_eq!((names[0], names[122], names[124], names[125]), ("1", "123", "7001", "0"));
    assert_eq!(schema.encoded_columns(), 124 + 2 * 65);
    assert_eq!(schema.to_text(), LIBSVM);
    let one_by_one = LIBSVM.replace(
        "\"7000..7001\" = { hash_buckets = 64 }",
        "7000 = { hash_buckets = 64 }\n7001 = { hash_buckets = 64 }",
    );
    let same = Schema::from_text(&one_by_one).expect("legal");
    assert_eq!((same.fingerprint(), &same), (schema.fingerprint(), &schema));
    let json = serde_json::to_string(&schema).expect("data");
    assert_eq!(serde_json::from_str::<Schema>(&json).expect("the same"), schema);
    // A model of before the format was a choice reads as before.
    assert!(!serde_json::to_string(&adult()).expect("data").contains("format"));
}

#[test]
fn what_a_libsvm_file_cannot_have_is_refused() {
    for (old, new, told) in [
        ("\"1..123\"", "age", "features.age: is no index of a libsvm file"),
        ("\"1..123\"", "01", "features.01: is no index of a libsvm file"),
        ("\"1..123\"", "\"9..5\"", "features.\"9..5\": has its end before its beginning"),
        ("\"1..123\"", "\"8000..1056479\"", "features.\"7000..7001\": has too many indices: at most 1048576 columns"),
        ("\"1..123\"", "\"1..4294967295\"", "features.\"1..4294967295\": has too many indices"),
        ("\"1..123\"", "\"0..5\"", "features.0: is listed twice"),
        ("\"qid\"", "\"person\"", "privacy.unit.column: is not \"qid\", the only group"),
        ("format = \"libsvm\"", "format = \"svm\"", "table.format: \"svm\" is not one of \"delimited\", \"libsvm\""),
        ("format = \"libsvm\"", "format = \"libsvm\"\ndelimiter = \" \"", "table.delimiter: goes with delimited text"),
        ("format = \"libsvm\"", "format = \"libsvm\"\nheader = false\ncolumns = [\"1\"]", "table.header: goes with"),
        ("format = \"libsvm\"", "nonzeros_max = 3", "table.nonzeros_max: goes with format = \"libsvm\""),
        ("format = \"libsvm\"", "format = \"libsvm\"\nnonzeros_max = 65537", "is 65537; write a number up to 65536"),
        ("format = \"libsvm\"", "format = \"libsvm\"\nnonzeros_max = 5000000000", "table.nonzeros_max: is 4294967295"),
        ("format = \"libsvm\"", "format = \"libsvm\"\nnonzeros_max = \"3\"", "write a whole number"),
    ] {
        let problems = Schema::from_text(&LIBSVM.replacen(old, new, 1)).expect_err(told).to_string();
        assert!(problems.contains(told), "{problems}");
    }
}

#[test]
fn features_of_one_kind_stand_in_json_once() {
    let schema = Schema::from_text(LIBSVM).expect("legal");
    let json = serde_json::to_string(&schema).expect("data");
    assert!(json.contains(r#"{"name":"1","through":"123","kind":"#), "{json}");
    assert!(json.contains(r#"{"name":"0","kind":"#), "alone: {json}");
    let with = |from: &str, to: &str| {
        assert!(json.contains(from), "{json}");
        serde_json::from_str::<Schema>(&json.replacen(from, to, 1)).map_err(|error| error.to_string())
    };
    // As it was written before there were runs.
    let one = with(r#""name":"1","through":"123""#, r#""name":"1""#).expect("legal");
    assert_eq!(one.features().len(), schema.features().len() - 122);
    for (through, told) in
        [("0", "are none, or too many"), ("18446744073709551615", "too many"), ("x", "through another")]
    {
        let error = with(r#""through":"123""#, &format!(r#""through":"{through}""#)).expect_err(told);
        assert!(error.contains(told), "{error}");
    }
    let one = with(r#""through":"123""#, r#""through":"1""#).expect("legal");
    assert_eq!(one.features().len(), schema.features().len() - 122);
    // After 123 features a run may be as long as the room that is left; these have 65 columns each, which is another rule's.
    for (length, is_run) in [(ENCODED_COLUMNS_MAX - 123, true), (ENCODED_COLUMNS_MAX - 122, false)] {
        let through = format!(r#""through":"{}""#, 7000 + length - 1);
        let error = with(r#""through":"7001""#, &through).expect_err("more columns than there may be");
        assert_eq!(error.contains("are none, or too many"), !is_run, "{error}");
    }
    // A name that is no plain index stands for itself.
    let named = adult().features()[0].clone();
    let parts = |names: &[&str]| {
        let features = names.iter().map(|name| Feature { name: (*name).to_owned(), ..named.clone() }).collect();
        SchemaParts { table: TableFormat::default(), features, ..adult().into() }
    };
    for names in [&["01", "2"][..], &["1", "2"], &["2", "1"], &["1", "3"]] {
        let schema = Schema::new(parts(names)).expect("legal");
        let json = serde_json::to_string(&schema).expect("data");
        assert_eq!(serde_json::from_str::<Schema>(&json).expect("the same"), schema, "{json}");
    }
}

#[test]
fn rows_of_many_features_list_them() {
    let with = |table: &str, features: &str| {
        let (start, _) = LIBSVM.split_once("[features]").expect("a section");
        let start = start.replace("format = \"libsvm\"", &format!("format = \"libsvm\"\n{table}"));
        Schema::from_text(&format!("{start}[features]\n{features}\n"))
    };
    let most = |table: &str, features: &str| with(table, features).expect("legal").nonzeros_max();
    assert_eq!(most("", "\"1..1023\" = { bounds = [0, 1] }"), None);
    assert_eq!(most("", "\"1..1024\" = { bounds = [0, 1] }"), Some(NONZEROS_MAX_DEFAULT));
    assert_eq!(most("nonzeros_max = 0", "\"1..1024\" = { bounds = [0, 1] }"), None);
    assert_eq!(most("nonzeros_max = 7", "3 = { bounds = [0, 1] }"), Some(7));
    // What is not 0 where a row has nothing has a place in every row.
    for other in ["bounds = [-1, 1]", "bounds = [0, 1000]", "categories = [1]", "hash_buckets = 2"] {
        assert_eq!(most("", &format!("\"1..1024\" = {{ {other} }}")), None, "{other}");
        let problems =
            with("nonzeros_max = 7", &format!("3 = {{ {other} }}")).expect_err("nothing to list").to_string();
        assert!(problems.contains("table.nonzeros_max: has nothing to list"), "{problems}");
    }
    // A value that is not there would be missing, and no 0.
    assert_eq!(most("missing = [\"0.0\"]", "\"1..1024\" = { bounds = [0, 1] }"), None);
    let problems =
        with("missing = [\"0.0\"]\nnonzeros_max = 7", "3 = { bounds = [0, 1] }").expect_err("both").to_string();
    assert!(problems.contains("table.missing: has 0 for a missing value"), "{problems}");
    let schema = with("nonzeros_max = 7", "\"1..3\" = { bounds = [0, 1] }").expect("legal");
    let text = schema.to_text();
    assert!(text.contains("format = \"libsvm\"\nnonzeros_max = 7\n"), "{text}");
    assert_eq!(Schema::from_text(&text), Ok(schema.clone()));
    let json = serde_json::to_string(&schema).expect("data");
    assert_eq!(serde_json::from_str::<Schema>(&json).expect("the same"), schema);
    let without = with("", "\"1..3\" = { bounds = [0, 1] }").expect("legal");
    assert!(!serde_json::to_string(&without).expect("data").contains("nonzeros"));
    let other = with("nonzeros_max = 8", "\"1..3\" = { bounds = [0, 1] }").expect("legal");
    assert_ne!(schema.fingerprint(), without.fingerprint());
    assert_ne!(schema.fingerprint(), other.fingerprint());
}

#[test]
fn the_text_is_written_as_a_person_would() {
    assert_eq!(adult().to_text(), ADULT);
}

/// A short text may stand for as many features as a schema may have, and for no more.
#[test]
fn ranges_of_features_have_the_room_of_a_schema() {
    let with_range = |last: usize| {
        Schema::from_text(&format!(
            "[privacy]\nunit = \"row\"\nadjacency = \"replace\"\n[table]\nformat = \"libsvm\"\n[target]\n\
             column = \"label\"\nclasses = [0, 1]\n[features]\n\"1..{last}\" = {{ bounds = [0, 1] }}\n"
        ))
    };
    let told = with_range(ENCODED_COLUMNS_MAX + 1).expect_err("too many").to_string();
    assert!(told.contains("has too many indices"), "{told}");
    assert_eq!(with_range(ENCODED_COLUMNS_MAX).expect("legal").features().len(), ENCODED_COLUMNS_MAX);
}

fn any_spelling() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,8}", "[-+]?[0-9]{1,4}(\\.[0-9]{1,2})?", any::<String>()]
        .prop_map(|text| text.trim_ascii().to_owned())
        .prop_filter("what is not listed", |text| text != OTHER)
}

fn any_column() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z_-]{1,8}", "\\PC{1,12}"]
        .prop_filter("a control character", |name| !name.chars().any(char::is_control))
}

fn any_bounds() -> impl Strategy<Value = (f64, f64)> {
    let number = || prop_oneof![(-1000i32..1000).prop_map(f64::from), -1e100..1e100, -1.0..1.0];
    (number(), number()).prop_filter("an empty span", |(low, high)| low < high)
}

fn any_kind() -> impl Strategy<Value = FeatureKind> {
    let numeric =
        (any_bounds(), 0.0..=1.0, any::<bool>(), any::<bool>()).prop_map(|((low, high), share, log, plain)| {
            let missing = f64::clamp(low + (high - low) * share, low, high);
            let missing = if plain { FeatureKind::missing_default(low, high) } else { missing };
            FeatureKind::Numeric { low, high, missing, log }
        });
    let categorical = (prop::collection::hash_set(any_spelling(), 1..40), any::<prop::sample::Index>()).prop_map(
        |(categories, missing)| {
            let missing = missing.index(categories.len() + 1);
            FeatureKind::Categorical { categories: categories.into_iter().collect(), missing }
        },
    );
    let hashed = (2..=300usize).prop_map(|buckets| FeatureKind::Hashed { buckets });
    prop_oneof![3 => numeric, 3 => categorical, 1 => hashed]
}

fn any_target_kind() -> impl Strategy<Value = TargetKind> {
    let classes = prop::collection::hash_set(any_spelling(), 4..9).prop_filter_map("an empty name", |spellings| {
        let spellings: Vec<String> = spellings.into_iter().collect();
        let class = |spellings: &[String]| Class { name: spellings[0].clone(), spellings: spellings.to_vec() };
        let classes = vec![class(&spellings[..1]), class(&spellings[1..3]), class(&spellings[3..])];
        classes.iter().all(|class| !class.name.is_empty()).then_some(TargetKind::Classes(classes))
    });
    prop_oneof![classes, any_bounds().prop_map(|(low, high)| TargetKind::Bounds { low, high })]
}

fn any_schema() -> impl Strategy<Value = Schema> {
    let names = prop::collection::hash_set(any_column(), 4..9).prop_map(|names| names.into_iter().collect::<Vec<_>>());
    let privacy =
        (1u32..9, 0..4usize, prop::option::of(9u64..1 << 20), (1u64 << 20)..ROWS_MAX_LIMIT, prop::option::of(0.1..9.0));
    let table = (
        any::<bool>(),
        any::<bool>(),
        prop::sample::select(b",;|\t \x07".to_vec()),
        prop::collection::vec(any_spelling(), 0..4),
    );
    let kinds = prop::collection::vec(any_kind(), 9);
    (names, privacy, any::<bool>(), table, any_target_kind(), kinds).prop_map(
        |(
            names,
            (cap, adjacency, rows, rows_max, row_norm),
            by_column,
            (header, named, delimiter, missing),
            kind,
            kinds,
        )| {
            let unit = PrivacyUnit::Column { column: names[1].clone(), rows_max: cap };
            let parts = SchemaParts {
                privacy: Privacy {
                    unit: if by_column { unit } else { PrivacyUnit::Row },
                    adjacency: Adjacency::ALL[adjacency],
                    rows,
                    rows_max,
                    row_norm,
                },
                table: TableFormat {
                    format: TextFormat::Delimited,
                    header,
                    columns: (named || !header).then(|| names.clone()),
                    nonzeros_max: None,
                    delimiter,
                    missing,
                },
                target: Target { column: names[0].clone(), kind },
                features: names[2..].iter().cloned().zip(kinds).map(|(name, kind)| Feature { name, kind }).collect(),
            };
            Schema::new(parts).expect("generated within the rules")
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_reads_back(schema in any_schema()) {
        let text = schema.to_text();
        let again = Schema::from_text(&text).map_err(|problems| TestCaseError::fail(format!("{problems}\n{text}")))?;
        prop_assert_eq!(&again, &schema);
        prop_assert_eq!(again.fingerprint(), schema.fingerprint());
        let json = serde_json::to_string(&schema).expect("plain data");
        prop_assert_eq!(&serde_json::from_str::<Schema>(&json).expect("checked when made"), &schema);
    }

    #[test]
    fn no_text_breaks_the_reader(noise in any::<String>(), at in any::<prop::sample::Index>(), cut in 0usize..9) {
        let mut text: Vec<char> = ADULT.chars().collect();
        let start = at.index(text.len());
        let end = (start + cut).min(text.len());
        text.splice(start..end, noise.chars());
        let text: String = text.into_iter().collect();
        if let Err(SchemaProblems(problems)) = Schema::from_text(&text) {
            prop_assert!(!problems.is_empty());
            let lines = text.matches('\n').count() + 1;
            prop_assert!(problems.iter().filter_map(|problem| problem.line).all(|line| (1..=lines).contains(&line)));
        }
    }
}

#[test]
fn the_reference_page_shows_a_schema_that_reads() {
    let page = include_str!("../../../../docs/reference/schema.md");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let schema = Schema::from_text(example).expect("the page's example is legal");
    assert_eq!(schema.features().len(), 5);
    for spelling in MISSING_DEFAULT {
        assert!(page.contains(&format!("{spelling:?}")), "the page lists the default spellings");
    }
    for adjacency in Adjacency::ALL {
        assert!(page.contains(&format!("`\"{adjacency}\"` |")), "{adjacency} is explained");
    }
}

#[test]
fn defaults_written_out_do_not_move_the_fingerprint() {
    let written = ADULT
        .replace("[features]", "[ features ] # the same")
        .replace("[0, 99999] }", "[0.0, 9.9999e4], log = true, missing = 49999.5 }")
        .replace("rows = 40_000", "rows_max = 2147483648\nrows = 40000");
    assert_ne!(written, ADULT);
    assert_eq!(Schema::from_text(&written).expect("legal").fingerprint(), adult().fingerprint());
}
