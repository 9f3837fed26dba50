//! Votes of a party, and the list of parties: read, and combined with the votes of another.

use std::fs;
use std::sync::OnceLock;

use reticent_core::coding::Coding;
use reticent_core::ledger::Account;
use reticent_core::schema::{Class, Schema, TargetKind};
use reticent_core::session::Session;
use reticent_core::units::{Delta, Epsilon};
use reticent_curator::party_votes::{Ballot, PartyVotes, Roster};
use reticent_curator::source::{Need, Row, TableSource};
use reticent_fit::method::FitRequest;
use reticent_fit::options::Options;
use reticent_fit::party::{self, Auxiliary, Combiner, PartyRequest};
use reticent_fit::plan::PrivacyClaim;
use reticent_fit::raw_columns::RawColumns;
use reticent_fit::unit_rows::UnitRows;

use crate::table::{file, schema};
use crate::used_model;
use crate::weights::AccountInMemory;

/// First byte: the classes and the combiner. The rest: the votes of party `a`, or the list of parties.
pub(crate) fn run(input: &[u8]) {
    let Some((choice, rest)) = input.split_first() else { return };
    if let Ok(text) = std::str::from_utf8(rest)
        && let Ok(roster) = Roster::parse(text)
    {
        assert!(!roster.parties().is_empty(), "an empty list is refused");
        assert_eq!(Roster::parse(&roster.parties().join("\n")).as_ref(), Ok(&roster), "names read back");
    }
    static QUESTIONS: OnceLock<Vec<Question>> = OnceLock::new();
    let questions = QUESTIONS.get_or_init(|| CLASSES.map(Question::new).into());
    let question = &questions[usize::from(*choice) % questions.len()];
    let combiner = Combiner::ALL[usize::from(*choice) / questions.len() % Combiner::ALL.len()];

    let folder = tempfile::tempdir().expect("a folder for temporary files");
    fs::write(folder.path().join("a.csv"), rest).expect("room for a temporary file");
    fs::write(folder.path().join("b.csv"), &question.other).expect("room for a temporary file");
    let roster = Roster::parse("a\nb\n").expect("two names");
    let Ok(votes) = PartyVotes::read(folder.path(), &roster, &question.ballot, &question.schema) else { return };
    question.combine(combiner, &votes);
}

const CLASSES: [&str; 2] = ["[\"no\", [\"yes\", 1]]", "[\"a,b\", \"#c\", \"d\\\"e\"]"];
const AUXILIARY: &[u8] = b"a,job\n1,clerk\n-4,cook\n9,x\n";

/// What is voted on.
struct Question {
    schema: Schema,
    auxiliary: Auxiliary,
    ballot: Ballot,
    /// Sound votes.
    other: String,
}

impl Question {
    fn new(classes: &str) -> Self {
        let schema = schema(&format!(
            "[privacy]\nunit = \"row\"\nadjacency = \"party\"\n[target]\ncolumn = \"y\"\nclasses = {classes}\n[features]\n\
             a = {{ bounds = [-10, 10] }}\njob = {{ categories = [\"clerk\", \"cook\"] }}\n"
        ));
        let TargetKind::Classes(declared) = schema.target().kind.clone() else { panic!("a target of classes") };
        let rows = file(AUXILIARY);
        let source = TableSource::open(rows.path(), &schema, Need::Features).expect("a table");
        let coding = Coding::of(&schema);
        let mut columns = RawColumns::new(&coding);
        let mut rows = UnitRows::new(&schema);
        let mut take = |row: Row<'_>| {
            columns.set(row.cells, row.given);
            rows.add(&columns);
        };
        source.for_each_row(&mut |_| {}, &mut take).expect("a whole table");
        // The fingerprint is short, so that the fuzzer may find it.
        let auxiliary = Auxiliary::new(&schema, rows, "f00d".to_owned()).expect("three rows");
        let ballot = Ballot::new(&declared, auxiliary.rows(), auxiliary.fingerprint().to_owned());
        let other = ballot.write(
            "b",
            reticent_curator::party_votes::VoteForm::Class,
            &first_class(&declared, auxiliary.rows()),
        );
        Self { schema, auxiliary, ballot, other }
    }

    fn combine(&self, combiner: Combiner, votes: &PartyVotes) {
        let relation = self.schema.relation();
        let epsilon = Epsilon::new(2.0).expect("above 0");
        let claim = PrivacyClaim::new(relation.clone(), epsilon, Delta::new(1e-6).expect("between 0 and 1"));
        let options = Options::default();
        let fit = FitRequest { schema: &self.schema, claim: &claim, init: None, options: &options };
        let request = PartyRequest { fit, auxiliary: &self.auxiliary, parties: votes.parties() as u64 };
        let prepared = party::prepare(combiner, &request).unwrap_or_else(|error| panic!("{error}"));
        let mut ledger = AccountInMemory(Account::promising([relation.clone()], None));
        let mut session = Session::open(votes, &mut ledger, relation).expect("a promised relation");
        let model = prepared.fit(&mut session, "parties", &self.schema, &mut |_| {});
        used_model::is_used(&model.unwrap_or_else(|error| panic!("{}: {error}", combiner.name())));
    }
}

fn first_class(classes: &[Class], rows: usize) -> Vec<f64> {
    let row = |_| (0..classes.len()).map(|class| if class == 0 { 1.0 } else { 0.0 });
    (0..rows).flat_map(row).collect()
}
