//! `reticent show`: a model and its certificate, for a person or a machine.

use super::read_model;
use crate::args::ShowArguments;
use crate::failure::Failure;
use crate::{files, report};

pub(super) fn run(arguments: &ShowArguments) -> Result<(), Failure> {
    let model = read_model(&arguments.model)?;
    if arguments.json { files::print(&model.to_json()) } else { files::print(&report::model(&model)) }
}
