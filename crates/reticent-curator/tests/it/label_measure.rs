//! A label holder against a consumer that it does not trust: each rule has a test that fails without it.

use std::fs;
use std::path::PathBuf;

use reticent_core::adjacency::{Adjacency, PrivacyUnit, Relation};
use reticent_core::coding::CODE_MAX;
use reticent_core::engine::Engine;
use reticent_core::label_query::{EventIds, LabelRelease, LabelReleaseError, WeightList};
use reticent_core::ledger::{Budget, LedgerStore};
use reticent_core::public_matrix::PublicMatrix;
use reticent_core::query::{Map, SumQuery};
use reticent_core::record::Cell;
use reticent_core::schema::Schema;
use reticent_core::units::{Delta, Epsilon};
use reticent_curator::identified_rows::IdentifiedRows;
use reticent_curator::label_engine::LabelEngine;
use reticent_curator::label_measure::{LabelAnswer, LabelTerms, MeasureError, measure, plan};
use reticent_curator::ledger_file::LedgerFile;
use reticent_curator::source::{Need, TableSource};
use reticent_curator::weights_file::{WeightsFileError, origin_of, read_weights, write_weights};
use reticent_testkit::reveal;
use tempfile::TempDir;

const WEIGHTS: &str = "id,q1,q2\na,3,-4\nb,100,0\nc,0,7\n";
const LABELS: &str = "event,user,clicked\na,u,yes\nb,u,no\nc,v,yes\nd,w,yes\n";

/// Files of one test.
struct Home {
    folder: TempDir,
    schema: Schema,
}

impl Home {
    fn new() -> Self {
        Self::with("unit = \"row\"", "classes = [\"no\", \"yes\"]")
    }

    fn with(unit: &str, target: &str) -> Self {
        let text =
            format!("[privacy]\n{unit}\nadjacency = \"label\"\n[target]\ncolumn = \"clicked\"\n{target}\n[features]\n");
        let schema = Schema::from_text(&text).unwrap_or_else(|problems| panic!("{problems}"));
        let home = Self { folder: TempDir::new().expect("a folder"), schema };
        home.write("labels.csv", LABELS);
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        fs::write(self.path(name), text).expect("the folder can be written");
        self.path(name)
    }

    fn list(&self, text: &str) -> WeightList {
        read_weights(&self.write("weights.csv", text), &mut |_| ()).unwrap_or_else(|error| panic!("{error}"))
    }

    fn refused(&self, text: impl AsRef<[u8]>) -> WeightsFileError {
        fs::write(self.path("weights.csv"), text).expect("the folder can be written");
        read_weights(&self.path("weights.csv"), &mut |_| ()).err().expect("refused")
    }

    fn ledger(&self, name: &str, epsilon: f64) -> LedgerFile {
        let promised = [self.schema.relation()].into();
        let budget = Budget { epsilon: Epsilon::new(epsilon).expect("legal"), delta: delta() };
        LedgerFile::create(&self.path(name), &promised, Some(budget)).expect("a new name")
    }

    fn terms(&self, epsilon: f64) -> LabelTerms<'_> {
        LabelTerms {
            schema: &self.schema,
            id_column: "event",
            unmatched: None,
            epsilon: Epsilon::new(epsilon).expect("legal"),
            delta: delta(),
            data: "labels.csv",
        }
    }

    fn ask(&self, list: &WeightList, ledger: &mut LedgerFile, epsilon: f64) -> Result<LabelAnswer, MeasureError> {
        measure(list, &self.path("labels.csv"), &self.terms(epsilon), ledger, &mut |_| ())
    }

    /// The exact sum, which only a test may see.
    fn exact(&self, list: &WeightList, labels: &str, unmatched: i16) -> Vec<i128> {
        let path = self.write("exact.csv", labels);
        let source = TableSource::open_with_ids(&path, &self.schema, Need::FeaturesAndTarget, "event").expect("opens");
        let engine = LabelEngine::join(source, &self.schema, list, unmatched, &mut |_| ()).expect("reads");
        let planned = plan(list, &self.terms(1.0)).expect("small");
        let query = SumQuery::of_matrix(planned.product.shape, list.matrix().clone()).expect("planned for it");
        reveal(engine.exact_sum(&query).expect("in memory"))
    }
}

fn delta() -> Delta {
    Delta::new(1e-6).expect("legal")
}

fn release(answer: &LabelAnswer) -> LabelRelease {
    serde_json::from_str(&answer.text).expect("a release")
}

fn spent(ledger: &LedgerFile) -> f64 {
    ledger.account().expect("sound").spent.values().next().expect("one promise").mu_up()
}

// The file, whatever is in it.

#[test]
fn weights_read_back_as_written() {
    let home = Home::new();
    let ids = ["plain", "with,comma", "with \"quotes\"", "two\nlines", "#hash"];
    let matrix = PublicMatrix::new(2, vec![1, -2, 0, 1 << 20, -(1 << 20), 0, 5, 6, 7, 8]).expect("short rows");
    let list = WeightList::new(EventIds::of(ids).expect("unique"), matrix).expect("as many");
    let file = fs::File::create(home.path("w.csv")).expect("writable");
    write_weights(&list, "a comment\nof two \"lines\"", "0123", file).expect("written");
    assert_eq!(origin_of(&home.path("w.csv")).expect("there"), Some("0123".to_owned()));
    home.write("bare.csv", "id,q1\na,1\n");
    assert_eq!(origin_of(&home.path("bare.csv")).expect("there"), None);
    let read = read_weights(&home.path("w.csv"), &mut |_| ()).expect("sound");
    assert_eq!(read.ids(), list.ids());
    assert!(read.matrix() == list.matrix());
}

#[test]
fn hostile_weights_are_refused_by_a_fact_of_the_file() {
    let home = Home::new();
    let cases: [(&str, &str); 17] = [
        ("", "does not begin with a header"),
        ("id,q1\n", "no row"),
        ("a,3,-4\n", "header"),
        ("id\na\n", "header"),
        ("id,q1\na,1\nb,NaN\n", "row 2 of the weights file has a weight that is not a whole number"),
        ("id,q1\na,1e3\n", "whole number"),
        ("id,q1\na,+1\n", "whole number"),
        ("id,q1\na,2147483648\n", "whole number"),
        ("id,q1\na,99999999999999999999999999\n", "whole number"),
        ("id,q1\na,\n", "whole number"),
        ("id,q1\na,-2147483648\n", "row 1 has an L2 norm above"),
        ("id,q1,q2\na,1048576,1\n", "L2 norm above"),
        ("id,q1,q2\na,1\n", "does not have 2 integers"),
        ("id,q1,q2\na,1,2,3\n", "does not have 2 integers"),
        ("id,q1,q2\na,1,2\nb,1,2\nc,1\n", "row 3 of the weights file does not have 2 integers"),
        ("id,q1\na,1\nb,2\na,3\n", "row 3 has the id of an earlier row"),
        ("id,q1\na,1\n,2\n", "row 2 has no id"),
    ];
    for (text, message) in cases {
        let refused = home.refused(text).to_string();
        assert!(refused.contains(message), "{text:?}: {refused}");
    }
    let wide = format!("id,{}\na,1\n", "q,".repeat(200_000));
    assert!(matches!(home.refused(wide), WeightsFileError::Header));
    let binary: Vec<u8> = (0..50_000u32).map(|index| (index * 7919 % 251) as u8).collect();
    home.refused(binary);
}

#[test]
fn one_label_listed_twice_is_refused() {
    // Else its price would be one row's and its influence two rows'.
    let error = Home::new().refused("id,q1\na,1048576\na,1048576\n");
    assert!(matches!(error, WeightsFileError::List(_)), "{error}");
}

#[test]
fn a_row_past_the_norm_is_refused_although_each_integer_is_small() {
    let row = ["1000000"; 2].join(",");
    let error = Home::new().refused(format!("id,q1,q2\na,{row}\n"));
    assert!(matches!(error, WeightsFileError::Matrix(_)), "{error}");
}

// Noise from the integers and the label holder's own terms.

#[test]
fn what_the_header_claims_changes_nothing() {
    let home = Home::new();
    let mut ledger = home.ledger("ledger", 10.0);
    let honest = release(&home.ask(&home.list(WEIGHTS), &mut ledger, 1.0).expect("affordable"));
    let hostile = format!(
        "# format 99, 1000000000 columns, norm 1, noise 0, mu 0\n# epsilon=1e9 rows=1\n{}",
        WEIGHTS.replace("id,q1,q2", "id,noise_scale=1,row_norm_square=0")
    );
    let answer = home.ask(&home.list(&hostile), &mut ledger, 1.0).expect("kept");
    assert!(answer.repeated, "the same question");
    assert_eq!(release(&answer), honest);
}

#[test]
fn noise_follows_the_longest_row_the_cap_and_epsilon() {
    let home = Home::new();
    let scale = |home: &Home, text: &str, epsilon: f64| {
        plan(&home.list(text), &home.terms(epsilon)).expect("affordable").product.noise_scale.get() as f64
    };
    // Long rows, so that a scale in whole numbers is fine enough for ratios.
    let weights = WEIGHTS.replace("b,100,0", "b,10000,0");
    let weights = weights.as_str();
    let usual = scale(&home, weights, 1.0);
    let mu = Budget { epsilon: Epsilon::new(1.0).expect("legal"), delta: delta() }.mu_squared_down().mu_up();
    assert!((usual - 10_000.0 / mu).abs() <= 1.0, "span 1 times the norm 10000: {usual}");
    assert!((scale(&home, "id,q1\na,1\nb,100000\n", 1.0) / usual - 10.0).abs() < 0.01);
    assert!(scale(&home, weights, 0.1) > 5.0 * usual);
    let grouped = Home::with("unit = { column = \"user\", rows_max = 3 }", "classes = [\"no\", \"yes\"]");
    assert!((scale(&grouped, weights, 1.0) / usual - 3.0).abs() < 0.01);
    let three = Home::with("unit = \"row\"", "classes = [\"no\", \"yes\", \"never\"]");
    assert!((scale(&three, weights, 1.0) / usual - 2f64.sqrt()).abs() < 0.01);
    let number = Home::with("unit = \"row\"", "bounds = [0, 10]");
    // Of so few rows 122 parts in 400 of mu² are for bins and squares.
    assert!((scale(&number, weights, 1.0) / usual * (278.0 / 400.0f64).sqrt() - 65534.0).abs() < 700.0);
}

/// Bounds that are far too wide cost little: labels are read where they are, and both questions are within the claim.
#[test]
fn numbers_are_read_in_the_part_of_their_bounds_where_they_lie() {
    let home = Home::with("unit = \"row\"", "bounds = [0, 1000]");
    let ids = 0..4000;
    let weights: String = ids.clone().map(|id| format!("e{id},1000,0\n")).collect();
    let list = home.list(&format!("id,q1,q2\n{weights}"));
    // 500 of the middle for the few that are not in the table.
    let labels: String = ids.skip(10).map(|id| format!("e{id},u,{}\n", 490 + id % 20)).collect();
    fs::write(home.path("labels.csv"), format!("event,user,clicked\n{labels}")).expect("writable");
    let mut ledger = home.ledger("ledger", 1.0);
    let release = release(&home.ask(&list, &mut ledger, 1.0).expect("affordable"));
    let (centre, half) = (release.window().centre(), release.window().half());
    assert!(centre.abs() < 0.05 && (0.02..0.2).contains(&half), "{centre} {half}");
    let values = release.values_for(&list).expect("its own");
    let noise = release.noise_standard_deviation() / (1000.0 * 32_767.0) * half * 500.0;
    let mean = 500.0 + 500.0 * (centre + values[0] / (1000.0 * 32_767.0) * half / 4000.0);
    assert!((mean - 499.5).abs() < 0.2 + 5.0 * noise / 4000.0, "{mean}");
    assert!(noise / 4000.0 < 0.2, "with the bounds as they are it is 1: {noise}");

    let (square, deviation) = release.square().expect("an integer").expect("numbers");
    let unit = (32_767.0 / (half * 500.0)).powi(2);
    let exact: f64 = (0..4000u32)
        .map(|id| if id < 10 { 500.0 } else { 490.0 + f64::from(id % 20) })
        .map(|label| (label - 500.0 - 500.0 * centre).powi(2))
        .sum();
    assert!((square / unit - exact).abs() < 0.01 * exact + 5.0 * deviation / unit, "{} {exact}", square / unit);

    let claim = Budget { epsilon: Epsilon::new(1.0).expect("legal"), delta: delta() }.mu_squared_down().mu_up();
    assert!(spent(&ledger) <= claim && spent(&ledger) > 0.999 * claim);
    let whole = release.planned.price_up(&home.schema.relation()).expect("finite").mu_up();
    assert!((whole - spent(&ledger)).abs() < 1e-12);
}

/// One row in five has no label, and all labels lie at the low end of their bounds: what is missing counts as their mean, however wide the part is in which they are
/// read.
#[test]
fn numbers_that_are_missing_count_as_the_mean_of_the_others() {
    use reticent_core::label_query::UnmatchedLabel;

    let home = Home::with("unit = \"row\"", "bounds = [0, 100]");
    let ids = 0..5000;
    let weights: String = ids.clone().map(|id| format!("e{id},1000\n")).collect();
    let list = home.list(&format!("id,q1\n{weights}"));
    let labels: String = ids.filter(|id| id % 5 > 0).map(|id| format!("e{id},u,{}\n", id % 45)).collect();
    fs::write(home.path("labels.csv"), format!("event,user,clicked\n{labels}")).expect("writable");
    for epsilon in [1.0, 8.0] {
        let mut ledger = home.ledger(&format!("ledger {epsilon}"), 10.0);
        let release = release(&home.ask(&list, &mut ledger, epsilon).expect("affordable"));
        let Ok(UnmatchedLabel::Number(counted)) = release.unmatched_label() else { panic!("a number") };
        assert!((counted - 22.0).abs() < 4.0, "{epsilon}: {counted}");
        let (centre, half) = (release.window().centre(), release.window().half());
        let noise = release.noise_standard_deviation() / (1000.0 * 32_767.0) * half * 50.0;
        let values = release.values_for(&list).expect("its own");
        let mean = 50.0 + 50.0 * (centre + values[0] / (1000.0 * 32_767.0) * half / 5000.0);
        assert!((mean - 22.0).abs() < 1.0 + 5.0 * noise / 5000.0, "{epsilon}: {mean} of all rows");
    }
}

#[test]
fn any_other_adjacency_is_refused() {
    let text = "[privacy]\nunit = \"row\"\nadjacency = \"replace\"\n[target]\ncolumn = \"clicked\"\n\
                classes = [\"no\", \"yes\"]\n[features]\nage = { bounds = [0, 9] }\n";
    let home = Home::new();
    let schema = Schema::from_text(text).unwrap_or_else(|problems| panic!("{problems}"));
    let terms = LabelTerms { schema: &schema, ..home.terms(1.0) };
    assert!(matches!(plan(&home.list(WEIGHTS), &terms), Err(MeasureError::Adjacency(_))));
}

#[test]
fn a_list_has_at_most_as_many_rows_as_are_declared() {
    let home = Home::with("unit = \"row\"\nrows_max = 3", "classes = [\"no\", \"yes\"]");
    assert!(plan(&home.list(WEIGHTS), &home.terms(1.0)).is_ok());
    for more in ["d,1,1\n", "d,1,1\ne,1,1\n"] {
        let refused = plan(&home.list(&format!("{WEIGHTS}{more}")), &home.terms(1.0));
        assert!(matches!(refused, Err(MeasureError::Rows { rows_max: 3, .. })));
    }
}

#[test]
fn a_question_about_other_rows_is_not_answered() {
    let home = Home::new();
    let path = home.write("exact.csv", LABELS);
    for (asked, joined) in [(WEIGHTS, "id,q1,q2\na,3,-4\nb,100,0\n"), ("id,q1,q2\na,3,-4\nb,100,0\n", WEIGHTS)] {
        let source = TableSource::open_with_ids(&path, &home.schema, Need::FeaturesAndTarget, "event").expect("opens");
        let engine = LabelEngine::join(source, &home.schema, &home.list(joined), 0, &mut |_| ()).expect("reads");
        let list = home.list(asked);
        let planned = plan(&list, &home.terms(1.0)).expect("small");
        let query = SumQuery::of_matrix(planned.product.shape, list.matrix().clone()).expect("planned for it");
        assert!(engine.exact_sum(&query).is_err());
    }
}

/// The feature holder's side: rows are found again by their ids, whatever their order.
#[test]
fn rows_come_in_the_order_of_a_list() {
    let home = Home::new();
    let text = "[privacy]\nunit = \"row\"\nadjacency = \"label\"\n[target]\ncolumn = \"clicked\"\nclasses = [\"no\", \"yes\"]\n\
                [features]\nage = { bounds = [0, 10] }\nsize = { bounds = [0, 4] }\n";
    let schema = Schema::from_text(text).unwrap_or_else(|problems| panic!("{problems}"));
    let path = home.write("rows.csv", "event,age,size\nx,5,0\nc,10,4\na,0,1\nb,2.5,2\n");
    let read = || {
        let source = TableSource::open_with_ids(&path, &schema, Need::Features, "event").expect("opens");
        IdentifiedRows::features(source, &schema, &mut |_| ()).expect("reads")
    };
    let all = CODE_MAX;
    let [a, b, c, x] =
        [[all, 0, all.div_ceil(4)], [all, all.div_ceil(4), all.div_ceil(2)], [all; 3], [all, all.div_ceil(2), 0]];
    let ordered = read().in_order_of(&home.list(WEIGHTS)).expect("all are there");
    assert_eq!(ordered, [a, b, c].concat());
    let as_it_was = read().in_order_of(&home.list("id,q1\nx,1\nc,1\na,1\nb,1\n")).expect("all are there");
    assert_eq!(as_it_was, [x, c, a, b].concat());
    let unknown = read().in_order_of(&home.list("id,q1\na,1\nb,1\nz,1\n")).expect_err("no z");
    assert_eq!(unknown.row, 3);

    let source = TableSource::open_with_ids(&path, &schema, Need::Features, "event").expect("opens");
    let first_of =
        || |cells: &[Cell], made: &mut [f64]| made[0] = if let Cell::Number(age) = cells[0] { age } else { -1.0 };
    let made = IdentifiedRows::read(source, [1, 1], &mut |_| (), first_of).expect("reads");
    assert_eq!(made.in_order_of(&home.list(WEIGHTS)).expect("all are there"), [0.0, 2.5, 10.0]);
}

// Labels: own clip, public default, own groups.

#[test]
fn every_row_of_the_list_has_a_label_whether_its_id_is_known_or_not() {
    let home = Home::new();
    let list = home.list("id,q1,q2\na,1,0\nunknown,10,0\nb,100,0\nc,1000,1\n");
    // a and c are yes, b is no, the unknown one gets the default.
    assert_eq!(home.exact(&list, LABELS, 0), [1001, 1]);
    assert_eq!(home.exact(&list, LABELS, 1), [1011, 1]);
    let nonsense = "event,user,clicked\na,u,maybe\nb,u,\nc,v,yes\n";
    assert_eq!(home.exact(&list, nonsense, 0), [1000, 1]);
    assert_eq!(home.exact(&list, nonsense, 1), [1111, 1], "a label that cannot be used counts as the default");
    assert_eq!(home.exact(&list, "event,user,clicked\n", 0), [0, 0]);
    let twice = "event,user,clicked\na,u,yes\na,u,no\n";
    assert_eq!(home.exact(&list, twice, 0), [1, 0], "the first row of an id counts");
}

#[test]
fn labels_are_clipped_to_the_label_holders_bounds() {
    let home = Home::with("unit = \"row\"", "bounds = [0, 10]");
    let list = home.list("id,q1\na,1\n");
    let of = |value: &str| home.exact(&list, &format!("event,user,clicked\na,u,{value}\n"), 0)[0];
    assert_eq!([of("0"), of("5"), of("10")], [-32767, 0, 32767]);
    assert_eq!([of("1e300"), of("-7"), of("inf"), of("NaN"), of("x")], [32767, -32767, 32767, 0, 0]);
}

/// The middle of the bounds may be far from all labels; what is asked for has to lie within them.
#[test]
fn a_number_without_a_label_is_coded_as_none_unless_one_is_named() {
    let home = Home::with("unit = \"row\"", "bounds = [0, 10]");
    let (list, labels) = (home.list("id,q1\na,1\nb,1\n"), home.write("labels.csv", "event,user,clicked\na,u,9\n"));
    let mut ledger = home.ledger("ledger", 100.0);
    for (named, expected) in [(None, i16::MIN), (Some("10"), 32_767), (Some("5"), 0)] {
        let terms = LabelTerms { unmatched: named, ..home.terms(1.0) };
        let answer = measure(&list, &labels, &terms, &mut ledger, &mut |_| ()).expect("affordable");
        let release: LabelRelease = serde_json::from_str(&answer.text).expect("a release");
        assert_eq!(release.unmatched, expected, "{named:?}");
    }
    let terms = LabelTerms { unmatched: Some("20"), ..home.terms(1.0) };
    let refused = measure(&list, &labels, &terms, &mut ledger, &mut |_| ());
    assert!(matches!(refused, Err(MeasureError::Unmatched(label)) if label == "20"));
}

#[test]
fn a_unit_counts_up_to_its_cap_in_the_order_of_the_list() {
    let home = Home::with("unit = { column = \"user\", rows_max = 2 }", "classes = [\"no\", \"yes\"]");
    let list = home.list("id,q1\na,1\nb,10\nc,100\nd,1000\ne,10000\n");
    let all = |users: [&str; 5]| {
        let rows = ["a", "b", "c", "d", "e"].iter().zip(users).map(|(id, user)| format!("{id},{user},yes\n"));
        // In another order than the list's.
        let rows: Vec<String> = rows.collect();
        let text = format!("event,user,clicked\n{}", rows.into_iter().rev().collect::<String>());
        home.exact(&list, &text, 0)[0]
    };
    assert_eq!(all(["u", "v", "w", "x", "y"]), 11111);
    assert_eq!(all(["u", "u", "u", "u", "u"]), 11, "two rows of one user");
    assert_eq!(all(["u", "v", "u", "u", "v"]), 10111);
    assert_eq!(all(["u", "", "NA", "u", "v"]), 11001, "a row that is nobody's counts as the default");
}

#[test]
fn which_rows_are_within_the_cap_does_not_depend_on_labels() {
    let home = Home::with("unit = { column = \"user\", rows_max = 1 }", "classes = [\"no\", \"yes\"]");
    let list = home.list("id,q1\na,1\nb,10\n");
    assert_eq!(home.exact(&list, "event,user,clicked\na,u,nonsense\nb,u,yes\n", 0), [0]);
    assert_eq!(home.exact(&list, "event,user,clicked\na,u,no\nb,u,yes\n", 0), [0]);
    assert_eq!(home.exact(&list, "event,user,clicked\na,u,yes\nb,u,yes\n", 0), [1]);
}

#[test]
fn nothing_but_the_noisy_integers_depends_on_the_labels() {
    let home = Home::new();
    let list = home.list(WEIGHTS);
    let describe = |labels: &str, name: &str| {
        home.write("labels.csv", labels);
        let mut ledger = home.ledger(name, 10.0);
        let answer = home.ask(&list, &mut ledger, 1.0).expect("affordable");
        let mut release = release(&answer);
        assert_eq!(release.integers.len(), 2);
        release.integers.clear();
        release.query.clear();
        release.label_set.clear();
        let entries = ledger.entries().expect("sound");
        (format!("{release:?}"), format!("{:?}", entries[0].request), spent(&ledger).to_bits())
    };
    let usual = describe(LABELS, "ledger-1");
    assert_eq!(describe("event,user,clicked\n", "ledger-2"), usual, "no id matches");
    assert_eq!(describe("event,user,clicked\nz,z,z\n\"", "ledger-3"), usual, "nonsense");
    assert!(usual.0.contains("NOT protected"), "{}", usual.0);
}

// The ledger is the label set.

#[test]
fn an_equal_question_is_answered_as_before_and_costs_nothing() {
    let home = Home::new();
    let mut ledger = home.ledger("ledger", 1.5);
    let first = home.ask(&home.list(WEIGHTS), &mut ledger, 1.0).expect("affordable");
    assert!(!first.repeated);
    let after = spent(&ledger);
    // New comments and names of columns, labels that have changed, another process: still the same question.
    home.write("labels.csv", "event,user,clicked\na,u,no\nb,u,yes\nc,v,no\n");
    drop(ledger);
    let mut ledger = LedgerFile::open(&home.path("ledger")).expect("sound");
    for text in [WEIGHTS.to_owned(), format!("# again\n{}", WEIGHTS.replace("q1", "first"))] {
        let again = home.ask(&home.list(&text), &mut ledger, 1.0).expect("nothing to pay");
        assert!(again.repeated);
        assert_eq!(again.text, first.text, "byte for byte");
    }
    // Even without the labels: nothing is read.
    fs::remove_file(home.path("labels.csv")).expect("was there");
    assert_eq!(home.ask(&home.list(WEIGHTS), &mut ledger, 1.0).expect("kept").text, first.text);
    assert_eq!(spent(&ledger).to_bits(), after.to_bits());
    assert_eq!(ledger.entries().expect("sound").len(), 1);
}

/// A consumer whose first request is still under way asks again.
#[test]
fn equal_questions_that_come_at_once_are_answered_once() {
    let home = Home::new();
    let list = home.list(WEIGHTS);
    let path = home.ledger("l.db", 8.0).path().to_owned();
    let answer = || {
        let mut ledger = LedgerFile::open(&path).expect("sound");
        home.ask(&list, &mut ledger, 0.5).unwrap_or_else(|error| panic!("{error}"))
    };
    let answers: Vec<LabelAnswer> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(answer)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert!(answers.iter().all(|one| one.text == answers[0].text));
    assert_eq!(answers.iter().filter(|one| !one.repeated).count(), 1);
    assert_eq!(LedgerFile::open(&path).expect("sound").entries().expect("sound").len(), 1);
}

#[test]
fn any_other_question_is_charged() {
    let home = Home::new();
    let mut ledger = home.ledger("ledger", 50.0);
    let mut answers = vec![home.ask(&home.list(WEIGHTS), &mut ledger, 1.0).expect("affordable").text];
    let others = [
        WEIGHTS.replace("b,100,0", "b,100,1"),
        WEIGHTS.replace("b,100,0", "b,99,0"),
        WEIGHTS.replace("c,0,7", "d,0,7"),
        "id,q1,q2\nb,100,0\na,3,-4\nc,0,7\n".to_owned(),
        format!("{WEIGHTS}e,0,0\n"),
    ];
    for (place, text) in others.iter().enumerate() {
        let before = spent(&ledger);
        let answer = home.ask(&home.list(text), &mut ledger, 1.0).expect("affordable");
        assert!(!answer.repeated && spent(&ledger) > before, "case {place}");
        answers.push(answer.text);
    }
    let before = spent(&ledger);
    assert!(!home.ask(&home.list(WEIGHTS), &mut ledger, 1.1).expect("affordable").repeated, "another noise");
    let unmatched = LabelTerms { unmatched: Some("yes"), ..home.terms(1.0) };
    let list = home.list(WEIGHTS);
    let answer = measure(&list, &home.path("labels.csv"), &unmatched, &mut ledger, &mut |_| ()).expect("affordable");
    assert!(!answer.repeated && spent(&ledger) > before);
    // Another ledger is another label set: it knows nothing of the first one's answers.
    let mut other = home.ledger("other", 2.0);
    assert!(!home.ask(&list, &mut other, 1.0).expect("affordable").repeated);
    assert!(spent(&other) > 0.0);
}

#[test]
fn all_who_ask_share_one_budget() {
    let home = Home::new();
    let mut ledger = home.ledger("ledger", 1.2);
    home.ask(&home.list(WEIGHTS), &mut ledger, 1.0).expect("the first fits");
    let error = home.ask(&home.list("id,q1\nz,5\n"), &mut ledger, 1.0).expect_err("the second does not");
    assert!(error.to_string().contains("the ledger refuses"), "{error}");
    assert!(home.ask(&home.list(WEIGHTS), &mut ledger, 1.0).expect("kept").repeated, "the first can be had again");
}

#[test]
fn a_refusal_says_the_same_whatever_the_labels() {
    let home = Home::new();
    let mut ledger = home.ledger("ledger", 0.5);
    let mut refusal = |labels: &str| {
        home.write("labels.csv", labels);
        home.ask(&home.list(WEIGHTS), &mut ledger, 1.0).expect_err("too much").to_string()
    };
    let usual = refusal(LABELS);
    assert_eq!(refusal("event,user,clicked\n"), usual);
    assert_eq!(refusal("event,user,clicked\nx,y\n\n\n1,2,3,4,5,6\n"), usual);
    // It comes before the labels are opened.
    fs::remove_file(home.path("labels.csv")).expect("was there");
    assert_eq!(home.ask(&home.list(WEIGHTS), &mut ledger, 1.0).expect_err("too much").to_string(), usual);
    let not_promised =
        Relation { unit: PrivacyUnit::Column { column: "user".to_owned(), rows_max: 2 }, adjacency: Adjacency::Label };
    let other = LedgerFile::create(&home.path("other"), &[not_promised].into(), None);
    let error = home.ask(&home.list(WEIGHTS), &mut other.expect("a new name"), 1.0).expect_err("not promised");
    assert!(error.to_string().contains("promises only"), "{error}");
}

#[test]
fn an_answer_is_on_disk_before_it_is_returned() {
    let home = Home::new();
    let mut ledger = home.ledger("ledger", 10.0);
    let answer = home.ask(&home.list(WEIGHTS), &mut ledger, 1.0).expect("affordable");
    let query = release(&answer).query;
    // Another process sees it while this one still has the ledger open.
    let other = LedgerFile::open(&home.path("ledger")).expect("sound");
    assert_eq!(other.kept_answer(&query).expect("sound"), Some(answer.text));
    assert_eq!(other.kept_answer(&"0".repeat(64)).expect("sound"), None);
}

#[test]
fn the_first_answer_to_a_question_stays() {
    let home = Home::new();
    let mut ledger = home.ledger("ledger", 10.0);
    let answer = home.ask(&home.list(WEIGHTS), &mut ledger, 1.0).expect("affordable");
    let query = release(&answer).query;
    assert_eq!(ledger.keep_answer(&query, 1, "another draw").expect("sound"), answer.text);
    let connection = rusqlite::Connection::open(home.path("ledger")).expect("a database");
    for statement in ["UPDATE answer SET release = 'x'", "DELETE FROM answer"] {
        assert!(connection.execute(statement, []).is_err(), "{statement}");
    }
}

// What the asking side can check.

#[test]
fn a_release_belongs_to_its_weights() {
    let home = Home::new();
    let mut ledger = home.ledger("ledger", 10.0);
    let list = home.list(WEIGHTS);
    let mut release = release(&home.ask(&list, &mut ledger, 1.0).expect("affordable"));
    assert_eq!(release.values_for(&list).expect("its own").len(), 2);
    let other = home.list(&WEIGHTS.replace("100", "101"));
    assert_eq!(release.values_for(&other), Err(LabelReleaseError::OtherWeights));
    let once = release.planned.product.times;
    for times in [0, 2] {
        release.planned.product.times = times;
        let refused = LabelReleaseError::Inconsistent("its question was not answered once");
        assert_eq!(release.values_for(&list), Err(refused));
    }
    release.planned.product.times = once;
    release.integers[0] = "1.5".to_owned();
    assert!(matches!(release.values_for(&list), Err(LabelReleaseError::Inconsistent(_))));
    release.integers.pop();
    assert!(matches!(release.values_for(&list), Err(LabelReleaseError::Inconsistent(_))));
}

#[test]
fn a_question_about_labels_has_a_price_under_label_adjacency_only() {
    let home = Home::new();
    let planned = plan(&home.list(WEIGHTS), &home.terms(1.0)).expect("affordable");
    for adjacency in [Adjacency::AddRemove, Adjacency::Replace, Adjacency::Party] {
        assert_eq!(planned.price_up(&Relation { unit: PrivacyUnit::Row, adjacency }), None, "{adjacency}");
    }
    let Map::MatrixProduct { row_norm_square, rows, .. } = *planned.product.shape.map() else {
        panic!("a matrix product")
    };
    assert_eq!((row_norm_square, rows), (10_000, 3), "recomputed from the integers");
}
