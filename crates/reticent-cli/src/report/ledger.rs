//! What a ledger says, as text and as JSON: the account, and the entries.

use std::fmt::Write;
use std::path::Path;

use reticent_core::adjacency::Relation;
use reticent_core::ledger::{
    Account, Budget, affordable_epsilon_down, epsilon_of, largest_request, six_decimals_down, six_decimals_up,
};
use reticent_core::units::{Delta, MuSquared};
use reticent_curator::ledger_file::Entry;
use serde_json::{Value, json};

use super::{path_json, path_text, printable, weak_claim};

/// What was spent, and what is left.
pub(crate) fn account(path: &Path, account: &Account, delta: Delta) -> String {
    account_at(path, account, account.budget.map_or(delta, |budget| budget.delta))
}

fn account_at(path: &Path, account: &Account, delta: Delta) -> String {
    let mut text = String::new();
    for (relation, spent) in &account.spent {
        // Where prices followed from answers only a limit that was set before is proved, with one or without: PRIVACY.md, "The promise".
        let condition =
            if *spent == MuSquared::ZERO { "" } else { ", if no price was chosen in view of earlier answers" };
        let [mu, epsilon] = [spent.mu_up(), epsilon_of(*spent, delta)].map(six_decimals_up);
        line!(
            text,
            "Ledger {}: this table has paid mu {mu:.6} (epsilon {epsilon:.6} at delta {:e}{condition}) in all, under {}",
            path_text(path),
            delta.get(),
            printable(&relation.to_string())
        );
        match left(account, *spent, delta) {
            Some((left, epsilon)) => {
                line!(
                    text,
                    "  left: mu {:.6}; {}",
                    six_decimals_down(left.mu_up()),
                    largest_request(left.mu_up(), epsilon, delta)
                );
            }
            None => line!(text, "  no limit is set; the owner can set one with `reticent ledger init`"),
        }
    }
    if account.budget.is_some() && account.spent.len() > 1 {
        line!(text, "  a request has a price under each of these, and has to fit under all of them");
    }
    text
}

/// What a limit says of what was paid before it was set; nothing where that is nothing.
pub(crate) fn late_limit(account: &Account) -> &'static str {
    match account.spent.values().all(|spent| *spent == MuSquared::ZERO) {
        true => "",
        false => {
            "What was paid before counts. The limit holds for all of it, whatever was asked, if it was not itself chosen in view of an \
             answer.\n"
        }
    }
}

/// The limit, the account, and all entries.
pub(crate) fn ledger(path: &Path, account: &Account, entries: &[Entry], delta: Option<Delta>) -> String {
    let mut text = String::new();
    match account.budget {
        Some(budget) => {
            let Budget { epsilon, delta } = budget;
            let mu = six_decimals_up(budget.mu_squared_down().mu_up());
            line!(text, "Budget: epsilon {epsilon} at delta {:e} (mu {mu:.6})", delta.get());
            text.push_str(&weak_claim(epsilon, delta, None));
        }
        None => line!(text, "Budget: no limit is set"),
    }
    match delta {
        Some(delta) => text.push_str(&account_at(path, account, delta)),
        None => {
            for (relation, spent) in &account.spent {
                let (mu, relation) = (six_decimals_up(spent.mu_up()), printable(&relation.to_string()));
                line!(text, "Spent: mu {mu:.6} under {relation}; give --delta to see it as epsilon");
            }
        }
    }
    if entries.is_empty() {
        line!(text, "No entries.");
        return text;
    }
    let width = |heading: &str, of: fn(&Entry) -> &str| {
        entries.iter().map(|entry| printable(of(entry)).chars().count()).max().unwrap_or(0).max(heading.len())
    };
    let purposes = width("purpose", |entry| &entry.request.purpose);
    let data = width("data", |entry| &entry.request.data);
    line!(text, "\n{:>5}  {:<20}  {:<purposes$}  {:<data$}  mu", "entry", "time (UTC)", "purpose", "data");
    for entry in entries {
        let price =
            |(relation, price): (&Relation, &MuSquared)| format!("{:.6} {relation}", six_decimals_up(price.mu_up()));
        let prices: Vec<String> = entry.charged.iter().map(price).collect();
        let Entry { id, time, request, .. } = entry;
        line!(
            text,
            "{id:>5}  {time:<20}  {:<purposes$}  {:<data$}  {}",
            printable(&request.purpose),
            printable(&request.data),
            printable(&prices.join(", "))
        );
    }
    text
}

/// What is left of the budget, and the largest epsilon that it pays for at a delta.
fn left(account: &Account, spent: MuSquared, delta: Delta) -> Option<(MuSquared, f64)> {
    let budget = account.budget?;
    let left = budget.mu_squared_down().checked_sub(spent).unwrap_or(MuSquared::ZERO);
    Some((left, affordable_epsilon_down(left, delta)))
}

/// The same for programs, at the delta of the limit if there is one.
pub(crate) fn account_json(path: &Path, account: &Account, delta: Delta) -> Value {
    account_json_at(path, account, Some(account.budget.map_or(delta, |budget| budget.delta)))
}

pub(crate) fn account_json_at(path: &Path, account: &Account, delta: Option<Delta>) -> Value {
    let amount = |mu_squared: MuSquared| json!({ "mu": mu_squared.mu_up(), "epsilon": delta.map(|delta| epsilon_of(mu_squared, delta)) });
    let relations: Vec<Value> = account
        .spent
        .iter()
        .map(|(relation, spent)| {
            let left = delta
                .and_then(|delta| left(account, *spent, delta))
                .map(|(left, epsilon)| json!({ "mu": left.mu_up(), "epsilon": epsilon }));
            json!({ "relation": relation.to_string(), "spent": amount(*spent), "left": left })
        })
        .collect();
    let budget = account.budget.map(
        |budget| json!({ "epsilon": budget.epsilon, "delta": budget.delta, "mu": budget.mu_squared_down().mu_up() }),
    );
    json!({ "path": path_json(path), "delta": delta, "budget": budget, "relations": relations })
}

pub(crate) fn entry_json(entry: &Entry, delta: Option<Delta>) -> Value {
    let charged: Vec<Value> = entry
        .charged
        .iter()
        .map(|(relation, price)| {
            let epsilon = delta.map(|delta| epsilon_of(*price, delta));
            json!({ "relation": relation.to_string(), "mu": price.mu_up(), "epsilon": epsilon })
        })
        .collect();
    json!({
        "entry": entry.id, "time": entry.time, "purpose": entry.request.purpose, "data": entry.request.data,
        "schema": entry.request.schema, "charged": charged,
    })
}
