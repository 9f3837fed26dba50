//! `reticent fit`: the main job.

use std::path::Path;

use reticent_core::adjacency::Adjacency;
use reticent_core::engine::Engine;
use reticent_core::ledger::LedgerStore;
use reticent_core::schema::Schema;
use reticent_core::session::Session;
use reticent_core::units::Delta;
use reticent_curator::ledger_file::LedgerFile;
use reticent_fit::model::Model;
use reticent_fit::prepared_fit::PreparedFit;
use serde_json::json;

use super::ledger_place::LedgerPlace;
use super::storage::{Storage, StoredRows};
use super::{data_name, plan, read_schema, read_with_ledger};
use crate::args::FitArguments;
use crate::failure::Failure;
use crate::files::OutputFile;
use crate::{files, interrupt, progress, report};

pub(super) fn run(arguments: &FitArguments) -> Result<(), Failure> {
    // Everything that can fail without the rows fails first: it must cost nothing.
    files::refuse_other_format(&arguments.out, "models", &[".json"])?;
    let place = LedgerPlace::of(arguments.ledger.as_deref(), "--data", &arguments.data)?;
    let mut inputs = vec![arguments.data.as_path(), &arguments.request.schema];
    inputs.extend(arguments.request.init.as_deref());
    inputs.extend(arguments.request.public_data.as_deref());
    inputs.push(place.path());
    let out = OutputFile::create_beside(&arguments.out, &inputs)?;
    let public = arguments.request.public_data.as_deref();
    // By names and links alone. That a copy has the same size or bytes would be told unpaid, to somebody who tries guesses at a row.
    if let Some(public) = public.filter(|public| files::is_one_file(public, &arguments.data)) {
        return Err(Failure::Usage(format!(
            "--public-data {} is the private table itself; a public table has other rows, which need no protection",
            public.display()
        )));
    }
    let schema = read_schema(&arguments.request.schema)?;
    let start = plan::start(&arguments.request, &schema)?;
    // By what is declared, not by rows that are counted: methods refuse different flags, and what is refused is not paid.
    let method = plan::choose(&arguments.request, &schema, start.as_ref())?;
    let prepare = |schema: &Schema| plan::prepare(&method, &arguments.request, schema, start.as_ref());
    let mut prepared = prepare(&plan::before_rows_are_counted(&schema))?;
    let storage =
        Storage::checked(&arguments.storage, &schema, prepared.plan().releases.iter().map(|release| &release.shape))?;
    let request = |prepared: &PreparedFit| prepared.plan().request(&data_name(&arguments.data), &schema);
    let (rows, mut ledger) = read_with_ledger(&arguments.data, &schema, &place, &storage, &request(&prepared))?;
    if schema.privacy().rows.is_none() && schema.relation().has_public_row_number() {
        let number =
            Session::open(rows.engine(), &mut ledger, schema.relation())?.public_row_number(&request(&prepared))?;
        let number = number.ok_or_else(|| {
            Failure::Refused(format!(
                "{}: this ledger also promises a relation under which the number of rows is private, so that it cannot be counted; \
                 declare a public round figure with `rows` in the schema, or use a ledger that promises {} alone",
                ledger.path().display(),
                schema.relation()
            ))
        })?;
        // Told as it is public; a model of nothing would be charged. Under label it is the number of rows with a usable label, and that there is none is told
        // once the ledger holds to these labels: by the fit.
        if number == 0 && schema.relation().adjacency == Adjacency::Replace {
            return Err(Failure::Data(format!(
                "{}: the table has no rows; under {} their number is public, and nothing can be learnt from none. Nothing was charged",
                arguments.data.display(),
                schema.relation()
            )));
        }
        // Noise scales are whole, and so a price depends a little on the number. Whether a fit is paid for must not, as it would tell the number
        // of rows with labels that nothing holds to yet: a plan that cannot be made with it, or does not fit any more, gives way to the one that
        // was admitted.
        let account = ledger.account()?;
        let is_admitted = |counted: &PreparedFit| account.admit(&request(counted)).is_ok();
        if let Some(counted) = prepare(&schema.with_rows(number)).ok().filter(is_admitted) {
            prepared = counted;
        }
    }
    let model = fit(&rows, &data_name(&arguments.data), &prepared, &schema, &mut ledger)?;

    let request = &arguments.request;
    write_and_report(out, &arguments.out, &model, &ledger, request.delta, arguments.json)
}

/// Writes a model that was paid for, and says what it cost.
pub(super) fn write_and_report(
    out: OutputFile,
    place: &Path,
    model: &Model,
    ledger: &LedgerFile,
    delta: Delta,
    as_json: bool,
) -> Result<(), Failure> {
    let text = model.to_json();
    if let Err(failure) = out.write_and_finish(&text) {
        // It is paid for: rather on the terminal than lost.
        files::print_or_rescue(&text)?;
        let Failure::InputOutput(what) = failure else { return Err(failure) };
        let kept = "the fit is paid for, and its model was written to stdout instead";
        return Err(Failure::InputOutput(format!("{what}; {kept}")));
    }
    let unprinted = |failure: Failure| {
        failure.with_remedy(&format!("the fit is paid for, and its model is complete in {}", place.display()))
    };
    let account = ledger.account().map_err(|error| unprinted(error.into()))?;
    if as_json {
        let document = json!({
            "model": report::path_json(place),
            "certificate": model.certificate,
            "remark": model.remark,
            "ledger": report::account_json(ledger.path(), &account, delta),
        });
        return files::print_json(&document).map_err(unprinted);
    }
    let certificate = model.certificate.as_ref().expect("a private fit has a certificate");
    files::print(&format!(
        "{}\nModel: {}\n{}{}",
        report::Claim::of_certificate(certificate, model.schema.privacy().rows).text(),
        report::path_text(place),
        report::remark(model),
        report::account(ledger.path(), &account, delta)
    ))
    .map_err(unprinted)
}

/// Pays and fits.
pub(super) fn fit(
    rows: &StoredRows,
    data: &str,
    prepared: &PreparedFit,
    schema: &Schema,
    ledger: &mut LedgerFile,
) -> Result<Model, Failure> {
    if let Some(encoding) = prepared.encoding() {
        rows.prepare(encoding)?;
    }
    pay_and_fit(rows.engine(), data, prepared, schema, ledger)
}

/// The same for any engine that is ready to answer.
pub(super) fn pay_and_fit(
    engine: &dyn Engine,
    data: &str,
    prepared: &PreparedFit,
    schema: &Schema,
    ledger: &mut LedgerFile,
) -> Result<Model, Failure> {
    interrupt::may_pay(ledger.path());
    let mut session = Session::open(engine, ledger, schema.relation())?;
    let bar = progress::passes(prepared.plan().releases.iter().map(|release| u64::from(release.times)).sum());
    let model = prepared.fit(&mut session, data, schema, &mut |_| bar.inc(1))?;
    bar.finish_and_clear();
    Ok(model)
}
