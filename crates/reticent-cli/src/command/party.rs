//! `reticent party`: votes of parties on public rows, and models from them.

use std::path::Path;

use reticent_core::adjacency::{Adjacency, PrivacyUnit};
use reticent_core::schema::{Schema, TargetKind};
use reticent_curator::file_fingerprint::file_fingerprint;
use reticent_curator::party_votes::{Ballot, PartyVotes, Roster, VoteForm, VotesError, is_party_name};
use reticent_curator::source::Need;
use reticent_fit::method;
use reticent_fit::party::{self, Auxiliary, local};
use reticent_fit::plan::PrivacyClaim;
use reticent_fit::prepared_fit::PreparedFit;
use reticent_fit::unit_rows::UnitRows;
use serde_json::json;

use super::ledger_place::LedgerPlace;
use super::{audit, data_name, fit, read_labelled, read_plain, read_schema};
use crate::args::{
    BallotArguments, BallotRequest, PartyCommand, PartyFitArguments, PartyPlanArguments, PartyRequest, VoteArguments,
};
use crate::combiner_choice::CombinerChoice;
use crate::failure::Failure;
use crate::files::OutputFile;
use crate::{files, report};

pub(super) fn run(command: &PartyCommand) -> Result<(), Failure> {
    match command {
        PartyCommand::Ballot(arguments) => ballot(arguments),
        PartyCommand::Vote(arguments) => vote(arguments),
        PartyCommand::Plan(arguments) => plan(arguments),
        PartyCommand::Fit(arguments) => combine(arguments),
        PartyCommand::Audit(arguments) => audit::votes(arguments),
    }
}

/// The public side of a vote.
struct Question {
    schema: Schema,
    auxiliary: Auxiliary,
    ballot: Ballot,
}

impl Question {
    fn read(request: &BallotRequest) -> Result<Self, Failure> {
        let schema = read_schema(&request.schema)?;
        let refused = |problem: String| Failure::Usage(format!("{}: {problem}", request.schema.display()));
        let classes = match &schema.target().kind {
            TargetKind::Classes(classes) => classes,
            TargetKind::Bounds { .. } => {
                let problem =
                    "parties vote on classes, and the schema's target has bounds; change [target] in the schema";
                return Err(refused(problem.to_owned()));
            }
        };
        if let Some(class) = classes.iter().find(|class| class.name.contains(['\n', '\r'])) {
            return Err(refused(format!(
                "the class {:?} has a line break, and votes are lines; name it without one",
                class.name
            )));
        }
        let adjacency = schema.privacy().adjacency;
        if adjacency != Adjacency::Party {
            return Err(refused(format!(
                "the schema says {adjacency}, and votes protect all that a party holds; write adjacency = \"party\" under [privacy]"
            )));
        }
        if let PrivacyUnit::Column { column, .. } = &schema.privacy().unit {
            return Err(refused(format!(
                "votes protect all that a party holds, and the schema's privacy unit is the column {column:?}; write unit = \"row\" under \
                 [privacy]"
            )));
        }
        let auxiliary = read_auxiliary(&request.auxiliary, &schema)?;
        let ballot = Ballot::new(classes, auxiliary.rows(), auxiliary.fingerprint().to_owned());
        Ok(Self { schema, auxiliary, ballot })
    }
}

pub(super) fn read_auxiliary(place: &Path, schema: &Schema) -> Result<Auxiliary, Failure> {
    let fingerprint =
        file_fingerprint(place).map_err(|error| Failure::input_output("reading the auxiliary rows", place, &error))?;
    let mut rows = UnitRows::new(schema);
    read_plain(place, schema, Need::Features, |columns, _| rows.add(columns))?;
    Auxiliary::new(schema, rows, fingerprint).map_err(|error| Failure::Usage(format!("{}: {error}", place.display())))
}

fn check_party(name: &str) -> Result<(), Failure> {
    if is_party_name(name) {
        return Ok(());
    }
    let rule = "1 to 64 letters, digits, `.`, `_` or `-`, and no `.` in front";
    Err(Failure::Usage(format!("--party {name:?} is not a name of a party: use {rule}")))
}

fn ballot(arguments: &BallotArguments) -> Result<(), Failure> {
    check_party(&arguments.party)?;
    files::refuse_other_format(&arguments.out, "votes", &[".csv"])?;
    let inputs = [arguments.ballot.schema.as_path(), &arguments.ballot.auxiliary];
    let out = OutputFile::create_beside(&arguments.out, &inputs)?;
    // What is there may be this ballot, filled in by hand since: no command makes it again.
    if arguments.out.exists() {
        return Err(Failure::InputOutput(format!(
            "{}: there is a file already, perhaps a ballot that is filled in, and a blank one does not replace it; remove it, or \
             name another place with --out",
            arguments.out.display()
        )));
    }
    let question = Question::read(&arguments.ballot)?;
    out.write_and_finish(&question.ballot.blank(&arguments.party))?;
    files::print(&format!(
        "Blank ballot of {} with {} rows: {}\nWrite the vote of your classifier into each row.\n",
        arguments.party,
        question.ballot.rows(),
        report::path_text(&arguments.out),
    ))
}

/// Local training: nothing of it leaves the party but the votes, and those are for the combiner alone.
fn vote(arguments: &VoteArguments) -> Result<(), Failure> {
    check_party(&arguments.party)?;
    files::refuse_other_format(&arguments.out, "votes", &[".csv"])?;
    let inputs = [arguments.ballot.schema.as_path(), &arguments.ballot.auxiliary, &arguments.data];
    let out = OutputFile::create_beside(&arguments.out, &inputs)?;
    let question = Question::read(&arguments.ballot)?;
    let own = read_labelled(&arguments.data, &question.schema, Need::FeaturesAndTarget)?;
    if own.labels().is_empty() {
        return Err(Failure::Data(format!(
            "{}: no row has a usable label: compare the classes of the schema with how the table spells them",
            arguments.data.display()
        )));
    }
    let probabilities = local::vote(&question.schema, &question.auxiliary, own).map_err(|error| {
        Failure::Data(format!("{}: no classifier can be trained on these rows: {error}", arguments.data.display()))
    })?;
    let as_read = format!("{}.csv", arguments.party);
    let is_named_as_read = arguments.out.file_name().is_some_and(|name| name == as_read.as_str());
    let form = if arguments.probabilities { VoteForm::Probabilities } else { VoteForm::Class };
    out.write_and_finish(&question.ballot.write(&arguments.party, form, &probabilities))?;
    files::print(&format!(
        "Votes of {} on {} rows: {}\nNOT private by themselves: give them to the combiner that was agreed on, and to nobody else{}.\n",
        arguments.party,
        question.ballot.rows(),
        report::path_text(&arguments.out),
        if is_named_as_read { String::new() } else { format!(", who needs the file as {as_read}") },
    ))
}

fn read_roster(place: &Path) -> Result<Roster, Failure> {
    let text = files::read_text(place, "list of parties", files::DOCUMENT_BYTES_MAX)?;
    Roster::parse(&text).map_err(|error| Failure::Usage(format!("{}: {error}", place.display())))
}

fn prepare(request: &PartyRequest, question: &Question, roster: &Roster) -> Result<PreparedFit, Failure> {
    let CombinerChoice { combiner, options } = &request.choice;
    let schema = &question.schema;
    let claim = PrivacyClaim::new(schema.relation(), request.epsilon, request.delta);
    let asked = party::PartyRequest {
        fit: method::FitRequest { schema, claim: &claim, init: None, options },
        auxiliary: &question.auxiliary,
        parties: roster.parties().len() as u64,
    };
    party::prepare(*combiner, &asked).map_err(Failure::usage)
}

fn plan(arguments: &PartyPlanArguments) -> Result<(), Failure> {
    let question = Question::read(&arguments.request.ballot)?;
    let roster = read_roster(&arguments.request.parties)?;
    let prepared = prepare(&arguments.request, &question, &roster)?;
    let plan = prepared.plan();
    if arguments.json {
        return files::print_json(&json!({ "plan": plan }));
    }
    files::print(&report::plan(plan, &question.schema))
}

fn combine(arguments: &PartyFitArguments) -> Result<(), Failure> {
    let request = &arguments.request;
    let place = LedgerPlace::of(arguments.ledger.as_deref(), "--votes", &arguments.votes)?;
    if files::is_in_folder(&arguments.out, &arguments.votes) {
        return Err(Failure::Usage(format!(
            "--out {}: the folder {} may hold nothing but votes, and the next command would refuse the model there as votes of nobody; \
             choose another place for the result",
            arguments.out.display(),
            arguments.votes.display()
        )));
    }
    files::refuse_other_format(&arguments.out, "models", &[".json"])?;
    let inputs =
        [request.ballot.schema.as_path(), &request.ballot.auxiliary, &request.parties, &arguments.votes, place.path()];
    let out = OutputFile::create_beside(&arguments.out, &inputs)?;
    let question = Question::read(&request.ballot)?;
    let roster = read_roster(&request.parties)?;
    let prepared = prepare(request, &question, &roster)?;
    let relation = question.schema.relation();
    let data = data_name(&request.parties);
    let existing = place.open_existing(&prepared.plan().request(&data, &question.schema), &relation)?;
    let votes = PartyVotes::read(&arguments.votes, &roster, &question.ballot, &question.schema)?;
    let mut ledger = place.or_beside(existing, relation)?;
    let model = fit::pay_and_fit(&votes, &data, &prepared, &question.schema, &mut ledger)?;
    fit::write_and_report(out, &arguments.out, &model, &ledger, request.delta, arguments.json)
}

impl From<VotesError> for Failure {
    fn from(error: VotesError) -> Self {
        match error {
            VotesError::Read { .. } => Self::InputOutput(error.to_string()),
            VotesError::Missing { .. }
            | VotesError::NoFile { .. }
            | VotesError::Stranger { .. }
            | VotesError::Malformed { .. } => Self::Data(error.to_string()),
        }
    }
}
