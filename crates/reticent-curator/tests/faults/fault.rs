//! What may go wrong with a call, and with which one.

use nix::libc;

use crate::disk::Loss;
use crate::random::Random;

/// What a call does, as far as faults are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Open,
    Read,
    Write,
    Resize,
    Sync,
    Remove,
    Rename,
    Lock,
    /// Asks whether a file is there, and what it is.
    Look,
    Close,
}

/// When a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum When {
    /// The call is not carried out.
    Before,
    /// It is, and its answer is lost or replaced.
    After,
}

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// The process is no more; what it wrote is there.
    Kill(When),
    /// The machine is no more.
    PowerLoss(When, Loss),
    /// The call reports an error of the disk.
    Error(When),
    /// So does every later call.
    Broken,
    /// There is no room, from here on.
    Full,
    /// Half is written, and then there is no room.
    ShortWrite,
    /// Half is read; the rest must be asked for again.
    ShortRead,
    /// The process has no right to do it.
    Forbidden,
    /// The process can open nothing more.
    NoDescriptors,
    /// One lock cannot be had because of an error of the file server.
    LockError,
    /// No lock can be had from here on: the server does not answer.
    NoLocks,
    /// No lock can be had from here on: somebody else has it.
    Locked,
}

/// A fault and the call that it strikes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) fault: Fault,
    /// Only calls of this kind count.
    pub(crate) only: Option<Kind>,
    /// Calls before it that the fault could have struck.
    pub(crate) at: usize,
}

impl Fault {
    /// Every fault.
    pub(crate) const ALL: [Self; 20] = [
        Self::Kill(When::Before),
        Self::Kill(When::After),
        Self::PowerLoss(When::Before, Loss::All),
        Self::PowerLoss(When::Before, Loss::None),
        Self::PowerLoss(When::Before, Loss::Names),
        Self::PowerLoss(When::Before, Loss::Some),
        Self::PowerLoss(When::After, Loss::All),
        Self::PowerLoss(When::After, Loss::Names),
        Self::PowerLoss(When::After, Loss::Some),
        Self::Error(When::Before),
        Self::Error(When::After),
        Self::Broken,
        Self::Full,
        Self::ShortWrite,
        Self::ShortRead,
        Self::Forbidden,
        Self::NoDescriptors,
        Self::LockError,
        Self::NoLocks,
        Self::Locked,
    ];

    /// Whether it can strike a call of this kind. A kill between two calls that change nothing is the same as one before
    /// the next that does.
    pub(crate) fn strikes(self, kind: Kind) -> bool {
        match self {
            Self::Kill(_) | Self::PowerLoss(..) => match kind {
                Kind::Open | Kind::Write | Kind::Resize | Kind::Sync | Kind::Remove | Kind::Rename | Kind::Lock => true,
                Kind::Read | Kind::Look | Kind::Close => false,
            },
            Self::Error(When::Before) | Self::Broken => kind != Kind::Close && kind != Kind::Lock,
            Self::Forbidden => matches!(kind, Kind::Open | Kind::Remove | Kind::Rename | Kind::Look),
            // An open file that reports an error would leak its descriptor: no system does that.
            Self::Error(When::After) => match kind {
                Kind::Write | Kind::Resize | Kind::Sync | Kind::Remove | Kind::Rename | Kind::Close => true,
                Kind::Open | Kind::Read | Kind::Lock | Kind::Look => false,
            },
            Self::Full => matches!(kind, Kind::Write | Kind::Open | Kind::Rename),
            Self::NoDescriptors => kind == Kind::Open,
            Self::ShortWrite => kind == Kind::Write,
            Self::ShortRead => kind == Kind::Read,
            Self::LockError | Self::NoLocks | Self::Locked => kind == Kind::Lock,
        }
    }

    /// Whether it goes on, for calls that it can strike.
    pub(crate) fn lasts(self) -> bool {
        match self {
            Self::Broken | Self::Full | Self::ShortWrite | Self::NoDescriptors | Self::NoLocks | Self::Locked => true,
            Self::Kill(_)
            | Self::PowerLoss(..)
            | Self::Error(_)
            | Self::ShortRead
            | Self::Forbidden
            | Self::LockError => false,
        }
    }

    /// The system's number for the error that the program is told; 0 where it is told none.
    pub(crate) fn errno(self) -> i32 {
        match self {
            Self::Kill(_) | Self::PowerLoss(..) | Self::ShortRead => 0,
            Self::Error(_) | Self::Broken | Self::LockError => libc::EIO,
            Self::Full | Self::ShortWrite => libc::ENOSPC,
            Self::Forbidden => libc::EACCES,
            Self::NoDescriptors => libc::EMFILE,
            Self::NoLocks => libc::ENOLCK,
            Self::Locked => libc::EAGAIN,
        }
    }
}

impl Kind {
    const ALL: [Self; 10] = [
        Self::Open,
        Self::Read,
        Self::Write,
        Self::Resize,
        Self::Sync,
        Self::Remove,
        Self::Rename,
        Self::Lock,
        Self::Look,
        Self::Close,
    ];
}

impl Plan {
    /// Any fault, at a call that a short life is likely to come to.
    pub(crate) fn any(random: &mut Random) -> Self {
        let fault = random.pick(&Fault::ALL);
        if random.one_in(2) {
            // Early calls make the ledger, later ones charge it.
            let most = random.pick(&[20, 100, 200]);
            return Self { fault, only: None, at: random.below(most) };
        }
        // Else most would strike the many looks and locks.
        let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| fault.strikes(*kind)).collect();
        let kind = random.pick(&kinds);
        let most = match kind {
            Kind::Remove => 6,
            Kind::Rename | Kind::Resize => 1,
            Kind::Open | Kind::Read | Kind::Sync | Kind::Close => 30,
            Kind::Write | Kind::Lock | Kind::Look => 80,
        };
        Self { fault, only: Some(kind), at: random.below(most) }
    }
}
