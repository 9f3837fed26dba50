//! `reticent show`: a model and its certificate for a person.

use super::read_model;
use crate::args::ShowArguments;
use crate::failure::Failure;
use crate::{files, report};

pub(super) fn run(arguments: &ShowArguments) -> Result<(), Failure> {
    files::print(&report::model(&read_model(&arguments.model)?))
}
