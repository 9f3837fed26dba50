//! What the ledger admits and refuses.

use std::collections::BTreeMap;

use reticent_core::account::gdp;
use reticent_core::adjacency::{Adjacency, PrivacyUnit, Relation};
use reticent_core::label_use::LabelUse;
use reticent_core::ledger::{
    Account, Budget, PlannedRelease, Refusal, Request, affordable_epsilon_down, epsilon_of, six_decimals_down,
    six_decimals_up,
};
use reticent_core::query::{Map, QueryShape};
use reticent_core::schema::Schema;
use reticent_core::units::{Delta, Epsilon, MuSquared, NoiseDistribution, NoiseScale};

fn relation(adjacency: Adjacency) -> Relation {
    Relation { unit: PrivacyUnit::Row, adjacency }
}

fn request(noise_scale: u64, times: u32) -> Request {
    let shape = QueryShape::new(Map::ClassCount { classes: 2 }, PrivacyUnit::Row, 1000).expect("small");
    let noise_scale = NoiseScale::new(noise_scale).expect("in range");
    let releases = vec![PlannedRelease {
        purpose: "test".to_owned(),
        shape,
        noise_scale,
        noise: NoiseDistribution::RoundedGaussian,
        times,
    }];
    Request {
        purpose: "test".to_owned(),
        data: "table".to_owned(),
        schema: "schema".to_owned(),
        labels: None,
        table: None,
        releases,
    }
}

fn account(budget: Option<Budget>, relations: &[Adjacency]) -> Account {
    Account::promising(relations.iter().map(|adjacency| relation(*adjacency)), budget)
}

fn budget() -> Budget {
    Budget { epsilon: Epsilon::new(1.0).expect("legal"), delta: Delta::new(1e-6).expect("legal") }
}

#[test]
fn every_promised_relation_is_charged_with_its_own_sensitivity() {
    let prices =
        account(None, &[Adjacency::AddRemove, Adjacency::Replace]).admit(&request(1 << 20, 3)).expect("no limit");
    // One count in steps of 2^20 with noise scale 2^20: mu² = 1 under add-remove, 2 when a row moves between classes.
    let one = 1u128 << 96;
    let expected = BTreeMap::from([
        (relation(Adjacency::AddRemove), MuSquared::from_steps(3 * one)),
        (relation(Adjacency::Replace), MuSquared::from_steps(6 * one)),
    ]);
    assert_eq!(prices, expected);
}

#[test]
fn one_relation_without_a_finite_price_refuses_the_whole_request() {
    let refusal =
        account(None, &[Adjacency::AddRemove, Adjacency::Party]).admit(&request(1 << 30, 1)).expect_err("party");
    assert_eq!(refusal, Refusal::Unbounded { relation: relation(Adjacency::Party) });
    assert_eq!(account(None, &[]).admit(&request(1 << 30, 1)), Err(Refusal::NothingPromised));
}

/// Without a budget a spend may grow as far as it can be written down.
#[test]
fn a_spend_beyond_what_can_be_counted_is_refused() {
    let price = request(1 << 20, 1).price_up(&relation(Adjacency::AddRemove)).expect("finite");
    let mut account = account(None, &[Adjacency::AddRemove]);
    for (more, is_admitted) in [(0, true), (1, false)] {
        let spent = MuSquared::from_steps(MuSquared::MAX.steps() - price.steps() + more);
        account.spent = BTreeMap::from([(relation(Adjacency::AddRemove), spent)]);
        let refused = Refusal::Overfull { relation: relation(Adjacency::AddRemove) };
        assert_eq!(account.admit(&request(1 << 20, 1)).err(), (!is_admitted).then_some(refused));
    }
}

#[test]
fn the_budget_is_exact_to_one_step() {
    let limit = budget().mu_squared_down();
    let request = request(1 << 24, 1);
    let price = request.price_up(&relation(Adjacency::AddRemove)).expect("finite");
    let mut account = account(Some(budget()), &[Adjacency::AddRemove]);
    let spent = |steps| BTreeMap::from([(relation(Adjacency::AddRemove), MuSquared::from_steps(steps))]);

    account.spent = spent(limit.steps() - price.steps());
    assert!(account.admit(&request).is_ok(), "what is left pays exactly");
    account.spent = spent(limit.steps() - price.steps() + 1);
    assert!(matches!(account.admit(&request), Err(Refusal::Exhausted(_))), "one step too little is too little");
}

#[test]
fn a_refusal_tells_asked_left_and_the_largest_request_that_fits() {
    let account = account(Some(budget()), &[Adjacency::AddRemove]);
    let Err(Refusal::Exhausted(figures)) = account.admit(&request(1 << 20, 1)) else { panic!("mu = 1 does not fit") };
    assert!((figures.asked_mu - 1.0).abs() < 1e-12);
    let left = budget().mu_squared_down();
    assert!((figures.left_mu - left.mu_up()).abs() < 1e-12);
    // The largest request really fits, and uses nearly all that is left.
    let largest = Epsilon::new(figures.left_epsilon).expect("above zero");
    let price = Budget { epsilon: largest, delta: figures.delta }.mu_squared_down();
    assert!(price <= left);
    assert!(figures.left_epsilon > 0.999_999 && figures.left_epsilon <= 1.0, "{}", figures.left_epsilon);
    let text = Refusal::Exhausted(figures).to_string();
    assert!(text.contains("asked") || text.contains("costs mu 1.0000"), "{text}");
    assert!(text.contains("the largest request that fits is epsilon"), "{text}");
}

/// At a tenth, delta alone is a mu of about a quarter.
#[test]
fn a_refusal_says_where_no_epsilon_is_left_at_a_large_delta() {
    let large = Budget { epsilon: Epsilon::new(1.0).expect("above zero"), delta: Delta::new(0.1).expect("below one") };
    let mut account = account(Some(large), &[Adjacency::AddRemove]);
    let small =
        Budget { epsilon: Epsilon::new(0.75).expect("above zero"), delta: Delta::new(1e-6).expect("below one") };
    let left = small.mu_squared_down();
    let spent = large.mu_squared_down().checked_sub(left).expect("less");
    account.spent = BTreeMap::from([(relation(Adjacency::AddRemove), spent)]);
    let Err(refusal) = account.admit(&request(1 << 20, 1)) else { panic!("mu = 1 does not fit") };
    let text = refusal.to_string();
    assert!(text.ends_with("no epsilon from 0.000001 on fits at delta 1e-1; one may at a smaller delta"), "{text}");
}

#[test]
fn a_budget_spent_in_two_halves_is_spent() {
    let mu = gdp::mu_down(budget().epsilon, budget().delta);
    let half = MuSquared::budget_down(mu).share_down(std::num::NonZeroU32::new(2).expect("two"));
    let scale = NoiseScale::smallest_within(
        request(1, 1).releases[0].shape.sensitivity(&relation(Adjacency::AddRemove)).expect("finite"),
        half,
    )
    .expect("affordable");
    let request = request(scale.get(), 1);
    let mut account = account(Some(budget()), &[Adjacency::AddRemove]);
    for round in 0..3 {
        match account.admit(&request) {
            Ok(prices) => {
                assert!(round < 2, "a third half does not fit");
                for (relation, price) in prices {
                    let spent = account.spent[&relation].checked_add(price).expect("small");
                    account.spent.insert(relation, spent);
                }
            }
            Err(_) => assert_eq!(round, 2, "the first two halves fit"),
        }
    }
}

#[test]
fn laplace_noise_has_a_pure_epsilon_and_gaussian_noise_has_none() {
    let pure = |noise, times, adjacency| {
        let mut release = request(1 << 21, times).releases.remove(0);
        release.noise = noise;
        release.pure_epsilon_up(&relation(adjacency))
    };
    // One count in steps of 2^20 with scale 2^21: epsilon 1/2 under add-remove, 1 when a row moves between classes.
    for (times, adjacency, expected) in
        [(1, Adjacency::AddRemove, 0.5), (3, Adjacency::AddRemove, 1.5), (1, Adjacency::Replace, 1.0)]
    {
        let found = pure(NoiseDistribution::DiscreteLaplace, times, adjacency).expect("Laplace noise");
        assert!((expected..expected + 1e-12).contains(&found), "{times} {adjacency}: {found}");
    }
    assert_eq!(pure(NoiseDistribution::RoundedGaussian, 1, Adjacency::AddRemove), None);
    assert_eq!(pure(NoiseDistribution::DiscreteLaplace, 1, Adjacency::Party), None);
}

#[test]
#[allow(clippy::float_cmp, reason = "figures that are told as they were given")]
fn what_is_told_as_left_can_be_asked_for() {
    let delta = budget().delta;
    assert_eq!(epsilon_of(MuSquared::ZERO, delta), 0.0);
    assert_eq!(affordable_epsilon_down(MuSquared::ZERO, delta), 0.0);
    for epsilon in [0.01, 0.3, 1.0, 2.0, 7.5, 1.0 / 3.0] {
        let whole = Budget { epsilon: Epsilon::new(epsilon).expect("legal"), delta };
        let left = whole.mu_squared_down();
        let told = affordable_epsilon_down(left, delta);
        assert!(Budget { epsilon: Epsilon::new(told).expect("above zero"), delta }.mu_squared_down() <= left);
        // A whole number of millionths is told as it is; anything else to ten digits.
        assert!(told == epsilon || (epsilon == 1.0 / 3.0 && (1.0 - 1e-9..1.0).contains(&(told / epsilon))), "{told}");
        assert!((epsilon_of(left, delta) / epsilon - 1.0).abs() < 1e-9);
        let printed = six_decimals_down(told);
        assert!(printed <= told && told < printed + 1e-6, "{printed} for {told}");
    }
    assert_eq!([six_decimals_down(1.234_567_8), six_decimals_down(0.000_000_9)], [1.234_567, 0.0]);
    assert_eq!([six_decimals_up(1.234_567_2), six_decimals_up(1e-12), six_decimals_up(0.0)], [1.234_568, 1e-6, 0.0]);
    assert!((six_decimals_up(2.0 + 1e-12) - 2.0).abs() < 1e-15, "of a computation that rounds up itself");
}

/// Where labels are protected and all else is public, the label of one request must not be a feature of another.
#[test]
fn requests_about_other_labels_are_refused_where_labels_are_promised() {
    let about = |column: &str, classes: &[&str]| {
        let text = format!(
            "[privacy]\nunit = \"row\"\nadjacency = \"label\"\n[target]\ncolumn = \"{column}\"\nclasses = [{}]\n[features]\nx = {{ bounds = [0, 1] }}\n",
            classes.join(", ")
        );
        let schema = Schema::from_text(&text).expect("legal");
        Request { labels: Some(LabelUse::of(&schema)), ..request(1 << 30, 1) }
    };
    for promised in [&[Adjacency::Label][..], &[Adjacency::AddRemove, Adjacency::Label]] {
        let mut ledger = account(None, promised);
        ledger.book(&request(1 << 30, 1)).expect("written before labels were kept");
        ledger.book(&about("y", &["0", "1", "2"])).expect("the first");
        ledger.book(&about("y", &["2", "1", "0"])).expect("the same again");
        let before = ledger.clone();
        let refusal = ledger.book(&about("y", &["0", "2"])).expect_err("tells which labels are 1");
        assert_eq!(refusal, Refusal::OtherLabels { column: "y".to_owned() });
        let refusal = ledger.book(&about("x2", &["0", "1", "2"])).expect_err("y may be a feature");
        assert_eq!(refusal, Refusal::OtherColumn { earlier: "y".to_owned(), column: "x2".to_owned() });
        assert_eq!(ledger, before, "nothing was charged");
    }
    let mut ledger = account(None, &[Adjacency::AddRemove]);
    ledger.book(&about("y", &["0", "1"])).expect("no limit");
    ledger.book(&about("z", &["0", "1"])).expect("whole rows are protected");
}

/// A relation has its columns by name: read in another way, a table may have another column of that name.
#[test]
fn tables_read_in_another_way_are_refused_where_a_column_is_promised() {
    let without_header = |columns: &str| format!("header = false\ncolumns = {columns}");
    let first = without_header("[\"patient\", \"visit\", \"x\", \"y\"]");
    let by_patient = |adjacency: &str| format!("patient<=1:{adjacency}").parse::<Relation>().expect("legal");
    let of_rows = |adjacencies: &[Adjacency]| adjacencies.iter().map(|one| relation(*one)).collect::<Vec<_>>();
    let ways = [
        (without_header("[\"visit\", \"patient\", \"x\", \"y\"]"), false),
        (without_header("[\"patient\", \"visit\", \"y\", \"x\"]"), false),
        (String::new(), false),
        (format!("{first}\nmissing = [\"0\"]"), false),
        (format!("{first}\nmissing = [\"null\", \"NaN\", \"NA\", \"?\", \"\", \"NA\"]"), true),
        (first.clone(), true),
    ];
    let ways_of_other_rows = ["delimiter = \"\\t\"".to_owned(), format!("{first}\ndelimiter = \";\"")];
    let unit = |relation: &Relation| relation.unit.clone();
    let about = |table: &str, unit: &PrivacyUnit, adjacency: &str| {
        let privacy = match unit {
            PrivacyUnit::Row => "\"row\"".to_owned(),
            PrivacyUnit::Column { column, rows_max } => format!("{{ column = {column:?}, rows_max = {rows_max} }}"),
        };
        let schema = Schema::from_text(&format!(
            "[privacy]\nunit = {privacy}\nadjacency = \"{adjacency}\"\n[table]\n{table}\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n\
             [features]\nx = {{ bounds = [0, 1] }}\n"
        ));
        let schema = schema.unwrap_or_else(|problems| panic!("{problems}"));
        let shape = QueryShape::new(Map::ClassCount { classes: 2 }, unit.clone(), 1000).expect("small");
        let mut request = request(1 << 30, 1);
        request.releases[0].shape = shape;
        Request { table: Some(schema.table().as_read()), ..request }
    };
    for (promised, binds) in [
        (vec![by_patient("add-remove")], true),
        (vec![by_patient("add-remove"), by_patient("replace")], true),
        // Under another promise than its own, too: a label must not be its feature.
        (of_rows(&[Adjacency::Label, Adjacency::AddRemove]), true),
        (of_rows(&[Adjacency::AddRemove, Adjacency::Replace]), false),
    ] {
        let mut ledger = Account::promising(promised.clone(), None);
        let unit = unit(&promised[0]);
        let early = Request { table: None, ..about(&first, &unit, "add-remove") };
        ledger.book(&early).expect("written before tables were kept");
        ledger.book(&about(&first, &unit, "add-remove")).expect("the first");
        for (way, is_the_same) in &ways {
            let before = ledger.clone();
            let answer = ledger.book(&about(way, &unit, "add-remove"));
            let refusal = (binds && !is_the_same).then_some(Refusal::OtherTable);
            assert_eq!(answer.err(), refusal, "{promised:?} {way}");
            assert_eq!(ledger == before, refusal.is_some(), "nothing was charged");
        }
        for way in &ways_of_other_rows {
            let before = ledger.clone();
            // Whatever is promised: a record of many lines is one row of the one and many of the other.
            let answer = ledger.book(&about(way, &unit, "add-remove"));
            assert_eq!(answer.err(), Some(Refusal::OtherRows), "{promised:?} {way}");
            assert_eq!(ledger, before, "nothing was charged");
        }
        ledger.book(&early).expect("read again as it was written");
    }
    // With labels their table was kept earlier than by itself.
    let labels = "{\"column\":\"y\",\"usable\":{\"spellings\":[\"0\",\"1\"],\"table\":{\"header\":true,\"columns\":null,\
                  \"delimiter\":59,\"missing\":[]}}}";
    let early = Request { labels: serde_json::from_str(labels).expect("of an earlier time"), ..request(1 << 30, 1) };
    let mut ledger = account(None, &[Adjacency::Label]);
    ledger.book(&early).expect("the first");
    for (table, refusal) in [
        ("delimiter = \";\"\nmissing = []", None),
        ("delimiter = \";\"", Some(Refusal::OtherTable)),
        ("missing = []", Some(Refusal::OtherRows)),
    ] {
        assert_eq!(ledger.book(&about(table, &PrivacyUnit::Row, "label")).err(), refusal, "{table}");
    }
}

/// What a header says of its columns, and the length of lists, is not another way to read a table.
#[test]
fn a_table_is_read_in_one_way_whatever_is_said_of_a_header_that_is_there() {
    let table = |lines: &str| {
        let text = format!(
            "[privacy]\nunit = \"row\"\nadjacency = \"label\"\n[table]\n{lines}\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n\
             [features]\n1 = {{ bounds = [0, 1] }}\n"
        );
        Schema::from_text(&text).unwrap_or_else(|problems| panic!("{problems}")).table().as_read()
    };
    assert_eq!(table(""), table("columns = [\"1\", \"y\"]"));
    assert_ne!(table("header = false\ncolumns = [\"y\", \"1\"]"), table("header = false\ncolumns = [\"1\", \"y\"]"));
    assert_eq!(table("format = \"libsvm\""), table("format = \"libsvm\"\nnonzeros_max = 1"));
    assert_ne!(table("format = \"libsvm\""), table(""));
}
