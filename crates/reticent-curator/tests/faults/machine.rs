//! The machine that a ledger's process runs on: follows what its calls do to the disk, and lets one of them go wrong.

use std::collections::BTreeMap;
use std::path::Path;

use crate::disk::{Disk, FileId};
use crate::fault::{Fault, Kind, Plan, When};
use crate::random::Random;
use crate::tracee::{After, Before, Call, Looked, Tracee, Warden};

/// Watches one process.
pub(crate) struct Machine<'a> {
    disk: &'a mut Disk,
    threats: Vec<Threat>,
    /// Drives the clock, where it is wrong.
    clock: Option<Random>,
    random: Random,
    open: BTreeMap<i32, Place>,
    /// The call under way makes this file.
    makes: bool,
    /// Where a write begins, and what it writes.
    writing: Option<(usize, Vec<u8>)>,
    /// The kind of each call that concerned the ledger, in order.
    pub(crate) kinds: Vec<Kind>,
    /// The faults that have struck, and at what first.
    pub(crate) struck: Vec<(Fault, Kind)>,
}

/// A fault that has not struck yet, or goes on.
struct Threat {
    plan: Plan,
    /// Calls that it could have struck.
    met: usize,
}

#[derive(Clone, Copy)]
enum Place {
    Folder,
    File(FileId),
}

impl<'a> Machine<'a> {
    pub(crate) fn new(disk: &'a mut Disk, plans: &[Plan], clock: Option<Random>, random: Random) -> Self {
        Self {
            disk,
            threats: plans.iter().map(|plan| Threat { plan: *plan, met: 0 }).collect(),
            clock,
            random,
            open: BTreeMap::new(),
            makes: false,
            writing: None,
            kinds: Vec::new(),
            struck: Vec::new(),
        }
    }

    /// The name of a file in the folder of the ledger.
    fn name(&self, path: &Path) -> Option<String> {
        let name = path.strip_prefix(self.disk.folder()).ok()?.to_string_lossy().into_owned();
        (!name.is_empty()).then_some(name)
    }

    fn concerns(&self, path: &Path) -> bool {
        path.starts_with(self.disk.folder())
    }

    /// What a call does, if it concerns the folder of the ledger.
    fn kind(&self, call: &Call) -> Option<Kind> {
        let open = |descriptor: &i32, kind: Kind| self.open.contains_key(descriptor).then_some(kind);
        let named = |path: &Path, kind: Kind| self.concerns(path).then_some(kind);
        match call {
            Call::Open { path, .. } => named(path, Kind::Open),
            Call::Remove { path } => named(path, Kind::Remove),
            Call::Rename { from, .. } | Call::Link { from, .. } => named(from, Kind::Rename),
            Call::Look { at: Looked::Path(path) } => named(path, Kind::Look),
            Call::Look { at: Looked::Descriptor(descriptor) } => open(descriptor, Kind::Look),
            Call::Read { descriptor, .. } => open(descriptor, Kind::Read),
            Call::Write { descriptor, .. } => open(descriptor, Kind::Write),
            Call::Resize { descriptor, .. } => open(descriptor, Kind::Resize),
            Call::Sync { descriptor } => open(descriptor, Kind::Sync),
            Call::Lock { descriptor } => open(descriptor, Kind::Lock),
            Call::Close { descriptor } => open(descriptor, Kind::Close),
            Call::Duplicate { .. } | Call::Sleep | Call::Time { .. } => None,
        }
    }

    /// The fault that strikes this call, if one does, and whether it is its first.
    fn fault(&mut self, kind: Kind, when: When) -> Option<(Fault, bool)> {
        let mut strikes = None;
        for Threat { plan: Plan { fault, only, at }, met } in &mut self.threats {
            if !fault.strikes(kind) || only.is_some_and(|only| only != kind) {
                continue;
            }
            if when == When::Before {
                *met += 1;
            }
            let first = *met == *at + 1;
            if strikes.is_none() && (first || *met > *at && fault.lasts()) {
                strikes = Some((*fault, first));
            }
        }
        let (fault, _) = strikes?;
        if self.struck.iter().all(|(earlier, _)| *earlier != fault) {
            self.struck.push((fault, kind));
        }
        strikes
    }

    /// What the call has done, as the disk sees it.
    fn follow(&mut self, call: &Call, result: i64) {
        match call {
            Call::Open { path, truncate, .. } => {
                let descriptor = i32::try_from(result).expect("a descriptor");
                let Some(name) = self.name(path) else {
                    if self.concerns(path) {
                        self.open.insert(descriptor, Place::Folder);
                    }
                    return;
                };
                let file = match self.makes {
                    true => self.disk.create(&name),
                    false => self.disk.file(&name).expect("no call made this file"),
                };
                if *truncate {
                    self.disk.resize(file, 0);
                }
                self.open.insert(descriptor, Place::File(file));
            }
            Call::Duplicate { descriptor } => {
                if let Some(place) = self.open.get(descriptor).copied() {
                    self.open.insert(i32::try_from(result).expect("a descriptor"), place);
                }
            }
            Call::Close { descriptor } => drop(self.open.remove(descriptor)),
            Call::Write { descriptor, .. } => {
                if let (Some(Place::File(file)), Some((offset, mut data))) =
                    (self.open.get(descriptor), self.writing.take())
                {
                    data.truncate(usize::try_from(result).expect("a length"));
                    self.disk.write(*file, offset, data);
                }
            }
            Call::Resize { descriptor, length } => {
                if let Some(Place::File(file)) = self.open.get(descriptor) {
                    self.disk.resize(*file, *length);
                }
            }
            Call::Sync { descriptor } => match self.open.get(descriptor) {
                Some(Place::File(file)) => self.disk.sync_file(*file),
                Some(Place::Folder) => self.disk.sync_folder(),
                None => {}
            },
            Call::Remove { path } => {
                if let Some(name) = self.name(path) {
                    self.disk.remove(&name);
                }
            }
            Call::Rename { from, to } => {
                if let (Some(from), Some(to)) = (self.name(from), self.name(to)) {
                    self.disk.rename(&from, &to);
                }
            }
            Call::Link { from, to } => {
                if let (Some(from), Some(to)) = (self.name(from), self.name(to)) {
                    self.disk.link(&from, &to);
                }
            }
            Call::Read { .. } | Call::Lock { .. } | Call::Look { .. } | Call::Sleep | Call::Time { .. } => {}
        }
    }

    /// A sync that fails may have thrown away what it should have written.
    fn fail(&mut self, call: &Call) {
        if let Call::Sync { descriptor } = call
            && let Some(Place::File(file)) = self.open.get(descriptor)
        {
            self.disk.fail_to_sync_file(*file, &mut self.random);
        }
    }
}

impl Warden for Machine<'_> {
    fn before(&mut self, call: &Call, tracee: &Tracee) -> Before {
        // Nobody has to wait: who sleeps, does so between two attempts.
        if matches!(call, Call::Sleep) {
            return Before::Answer(0);
        }
        let Some(kind) = self.kind(call) else { return Before::Proceed };
        self.kinds.push(kind);
        if let Call::Open { path, create, .. } = call {
            self.makes = *create && !path.exists();
        }
        if let Call::Write { descriptor, from, length, offset } = call {
            let offset = offset.unwrap_or_else(|| tracee.position(*descriptor));
            self.writing = Some((offset, tracee.read(*from, *length)));
        }
        let Some((fault, first)) = self.fault(kind, When::Before) else { return Before::Proceed };
        match fault {
            Fault::Kill(When::Before) => Before::Kill,
            Fault::PowerLoss(When::Before, _) => {
                // It was on its way: any part of it may have arrived.
                if let Call::Write { length, .. } = call {
                    self.follow(call, *length as i64);
                } else if let Call::Resize { .. } | Call::Remove { .. } | Call::Rename { .. } = call {
                    self.follow(call, 0);
                }
                Before::Kill
            }
            Fault::Error(When::Before)
            | Fault::Broken
            | Fault::Full
            | Fault::Forbidden
            | Fault::NoDescriptors
            | Fault::LockError
            | Fault::NoLocks
            | Fault::Locked => {
                self.fail(call);
                Before::Answer(-i64::from(fault.errno()))
            }
            Fault::ShortRead | Fault::ShortWrite => {
                let (Call::Read { length, .. } | Call::Write { length, .. }) = call else { return Before::Proceed };
                match fault.errno() {
                    0 => Before::Shorten((length / 2).max(1)),
                    _ if first && *length > 1 => Before::Shorten(length / 2),
                    error => Before::Answer(-i64::from(error)),
                }
            }
            Fault::Kill(When::After) | Fault::PowerLoss(When::After, _) | Fault::Error(When::After) => Before::Proceed,
        }
    }

    fn after(&mut self, call: &Call, result: i64, tracee: &Tracee) -> After {
        if let (Call::Time { into, per_second }, Some(clock)) = (call, &mut self.clock) {
            // Anything between 1990 and 2090, each time anew.
            tracee.put(*into, 631_152_000 + clock.below(3_155_760_000) as i64);
            tracee.put(*into + 8, clock.below(*per_second as usize) as i64);
            return After::Proceed;
        }
        let fault = match self.kind(call) {
            Some(kind) => self.fault(kind, When::After).map(|(fault, _)| fault),
            None => None,
        };
        if result >= 0 && !matches!((fault, call), (Some(Fault::Error(When::After)), Call::Sync { .. })) {
            self.follow(call, result);
        }
        match fault {
            Some(Fault::Kill(When::After) | Fault::PowerLoss(When::After, _)) => After::Kill,
            Some(Fault::Error(When::After)) if result >= 0 => {
                self.fail(call);
                After::Answer(-i64::from(nix::libc::EIO))
            }
            Some(_) | None => After::Proceed,
        }
    }
}
