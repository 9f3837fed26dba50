//! `reticent ledger`: the account of what a table has paid.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use reticent_core::adjacency::{Adjacency, PrivacyUnit, Relation};
use reticent_core::ledger::{Budget, LedgerStore};
use reticent_core::units::Delta;
use reticent_curator::ledger_file::{Entry, LedgerFile};
use reticent_fit::certificate::Certificate;
use reticent_fit::model::Model;
use reticent_fit::plan::Plan;
use serde_json::json;

use super::read_model;
use crate::args::LedgerCommand;
use crate::failure::Failure;
use crate::{files, report};

pub(super) fn run(command: &LedgerCommand) -> Result<(), Failure> {
    match command {
        LedgerCommand::Init { ledger, epsilon, delta, promise } => {
            init(ledger, Budget { epsilon: *epsilon, delta: *delta }, promise)
        }
        LedgerCommand::Show { ledger, json, delta } => show(ledger, *json, *delta),
        LedgerCommand::Export { ledger } => export(ledger),
        LedgerCommand::Verify { ledger, model, json } => verify(ledger, model, *json),
    }
}

fn init(path: &Path, budget: Budget, promise: &[Relation]) -> Result<(), Failure> {
    if path.exists() {
        let mut ledger = LedgerFile::open(path)?;
        let kept: BTreeSet<Relation> = ledger.account()?.spent.into_keys().collect();
        if !promise.is_empty() && !promise.iter().cloned().collect::<BTreeSet<_>>().eq(&kept) {
            let kept = kept.iter().map(Relation::to_string).collect::<Vec<_>>().join(", ");
            return Err(Failure::Usage(format!(
                "{}: this ledger exists and promises {kept}; the promise of a ledger does not change",
                path.display()
            )));
        }
        ledger.set_budget(budget)?;
        let account = ledger.account()?;
        return files::print(&format!(
            "{}{}{}",
            report::weak_claim(budget.epsilon, budget.delta, None),
            report::account(path, &account, budget.delta),
            report::late_limit(&account)
        ));
    }
    if let [first, rest @ ..] = promise
        && let Some(other) = rest.iter().find(|other| other.unit != first.unit)
    {
        return Err(Failure::Usage(format!(
            "--promise {first} and --promise {other} protect different units: no table is read for both, so such a ledger \
             would refuse every request; promise one unit, the largest"
        )));
    }
    let default = Relation { unit: PrivacyUnit::Row, adjacency: Adjacency::AddRemove };
    let promised: BTreeSet<Relation> =
        if promise.is_empty() { [default].into() } else { promise.iter().cloned().collect() };
    let ledger = LedgerFile::create(path, &promised, Some(budget))?;
    files::print(&format!(
        "{}{}",
        report::weak_claim(budget.epsilon, budget.delta, None),
        report::account(path, &ledger.account()?, budget.delta)
    ))
}

fn show(path: &Path, json: bool, delta: Option<Delta>) -> Result<(), Failure> {
    let ledger = LedgerFile::open(path)?;
    let (account, entries) = (ledger.account()?, ledger.entries()?);
    let delta = delta.or(account.budget.map(|budget| budget.delta));
    if json {
        let mut document = report::account_json_at(path, &account, delta);
        document["id"] = json!(ledger.id());
        document["entries"] = entries.iter().map(|entry| report::entry_json(entry, delta)).collect();
        return files::print_json(&document);
    }
    files::print(&report::ledger(path, &account, &entries, delta))
}

/// Opening a ledger checks every seal; what is left is to hold certificates against it: their seals, and what they say was paid.
fn verify(path: &Path, models: &[PathBuf], as_json: bool) -> Result<(), Failure> {
    let ledger = LedgerFile::open(path)?;
    let entries = ledger.entries()?;
    let mut matched = Vec::new();
    for place in models {
        let disagrees = |why: String| Failure::Data(format!("{}: {why}", place.display()));
        let model = read_model(place)?;
        let certificate = model.certificate.as_ref();
        let certificate = certificate
            .ok_or_else(|| disagrees("this model was not fitted privately and names no entry".to_owned()))?;
        let reference = &certificate.ledger;
        if reference.id != ledger.id() {
            let (named, found) = (&reference.id, ledger.id());
            return Err(disagrees(format!(
                "its certificate names ledger {named}, and this one is {found}; name the other"
            )));
        }
        // Every other fit has its ledger at hand.
        let seal = reference.seal.as_ref().ok_or_else(|| {
            let why = "its certificate has no seal: a model that was fitted to a release of another organisation (`walr fit`) carries \
                       none and cannot be verified this way; any other has lost it";
            disagrees(why.to_owned())
        })?;
        let entry = entries.iter().find(|entry| entry.id == reference.entry && entry.seal == *seal).ok_or_else(|| {
            disagrees(format!(
                "its certificate has another seal of entry {} than the ledger: the ledger was restored from an older copy or \
                 rewritten; keep both files, and count the releases of this model as spent",
                reference.entry
            ))
        })?;
        if let Some(what) = difference(&model, certificate, entry) {
            return Err(disagrees(format!(
                "it was changed after it was written: its {what} is not that of entry {}, which it names; use the file that `reticent \
                 fit` wrote, and go by what the ledger says of that entry",
                reference.entry
            )));
        }
        matched.push((place, reference.entry));
    }
    let (count, last) = (entries.len(), entries.last().map(|entry| entry.seal.as_str()));
    if as_json {
        let models: Vec<_> =
            matched.iter().map(|(place, entry)| json!({ "model": report::path_json(place), "entry": entry })).collect();
        let document = json!({ "ledger": report::path_json(path), "id": ledger.id(), "entries": count, "seal": last, "models": models });
        return files::print_json(&document);
    }
    let mut text = format!("{}: {count} entries, all seals hold\n", report::path_text(path));
    if let Some(seal) = last {
        text.push_str(&format!("Seal of entry {count}: {seal}\n"));
    }
    for (place, entry) in matched {
        text.push_str(&format!(
            "{}: its seal of entry {entry} is the ledger's, as are its price, method, releases and schema (coefficients are not \
             in the ledger: keep the file that `fit` wrote)\n",
            report::path_text(place)
        ));
    }
    text.push_str(
        "Keep the last seal away from the ledger, as every certificate does: seals that are kept show that nothing before them \
         was changed; who may write the file could make new ones.\n",
    );
    files::print(&text)
}

/// The first thing that a model says otherwise than the entry that paid for it.
fn difference(model: &Model, certificate: &Certificate, entry: &Entry) -> Option<&'static str> {
    let releases = certificate.releases.iter().map(|release| &release.planned);
    if entry.charged.get(&certificate.relation) != Some(&certificate.mu_squared) {
        Some("price under the relation that it claims")
    } else if !releases.eq(&entry.request.releases) {
        Some("list of releases")
    } else if entry.request.purpose != Plan::purpose(&certificate.method) {
        Some("method")
    } else if certificate.schema != entry.request.schema || model.schema.fingerprint() != entry.request.schema {
        Some("schema")
    } else {
        None
    }
}

fn export(path: &Path) -> Result<(), Failure> {
    let ledger = LedgerFile::open(path)?;
    let account = ledger.account()?;
    let entries: Vec<_> = ledger
        .entries()?
        .iter()
        .map(|entry| {
            let charged: serde_json::Map<String, serde_json::Value> =
                entry.charged.iter().map(|(relation, price)| (relation.to_string(), json!(price))).collect();
            json!({ "id": entry.id, "time": entry.time, "request": entry.request, "charged_mu_squared_steps": charged, "seal": entry.seal })
        })
        .collect();
    let promised: Vec<String> = account.spent.keys().map(Relation::to_string).collect();
    let document = json!({
        "format": "reticent-ledger-export",
        "version": 1,
        "id": ledger.id(),
        "mu_squared_step": "2^-96",
        "promised": promised,
        "budget": account.budget,
        "entries": entries,
    });
    files::print_json(&document)
}
