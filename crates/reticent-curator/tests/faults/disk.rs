//! What a disk may hold after the power went: only what was synced is certain, of the rest any part.
//!
//! A file has two contents. One is what programs see, which the kernel keeps and a kill does not touch; the real file has
//! it. The other is what the disk surely has. Between them lie changes that no sync has covered yet. A new or removed name
//! is certain when the folder is synced. After a sync that failed the kernel may have thrown its changes away and call
//! the next sync a success: they are then on the disk in part, for good.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::random::Random;

/// What is lost of the changes that no sync has covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Loss {
    /// Everything.
    All,
    /// Nothing.
    None,
    /// The names that were made or removed, and no content.
    Names,
    /// Any part: each sector is old, new, torn or noise, each name is as it was at some time since the last sync.
    Some,
}

/// Number of a file in [`Disk`]: stays the same when the file is renamed.
pub(crate) type FileId = usize;

/// The folder of a ledger, on a disk whose power may go.
pub(crate) struct Disk {
    folder: PathBuf,
    files: Vec<File>,
    /// What each name has meant since the folder was last synced, oldest first: the first is certain, the last is seen.
    names: BTreeMap<String, Vec<Option<FileId>>>,
    lie: Option<Lie>,
}

/// What a disk says it has synced, and has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    /// The content of files.
    Content,
    /// Names in the folder.
    Names,
}

#[derive(Default)]
struct File {
    seen: Vec<u8>,
    certain: Vec<u8>,
    unsynced: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Write { offset: usize, data: Vec<u8> },
    Resize(usize),
}

impl Disk {
    /// An empty folder.
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), files: Vec::new(), names: BTreeMap::new(), lie: None }
    }

    /// From now on the disk lies.
    pub(crate) fn begin_to_lie(&mut self, lie: Lie) {
        self.lie = Some(lie);
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file that a name means now.
    pub(crate) fn file(&self, name: &str) -> Option<FileId> {
        *self.names.get(name)?.last()?
    }

    pub(crate) fn create(&mut self, name: &str) -> FileId {
        self.files.push(File::default());
        self.mean(name, Some(self.files.len() - 1));
        self.files.len() - 1
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.mean(name, None);
    }

    pub(crate) fn rename(&mut self, from: &str, to: &str) {
        let file = self.file(from);
        self.mean(to, file);
        self.mean(from, None);
    }

    pub(crate) fn link(&mut self, from: &str, to: &str) {
        let file = self.file(from);
        self.mean(to, file);
    }

    pub(crate) fn write(&mut self, file: FileId, offset: usize, data: Vec<u8>) {
        self.change(file, Change::Write { offset, data });
    }

    pub(crate) fn resize(&mut self, file: FileId, length: usize) {
        self.change(file, Change::Resize(length));
    }

    pub(crate) fn sync_file(&mut self, file: FileId) {
        if self.lie != Some(Lie::Content) {
            let File { certain, unsynced, .. } = &mut self.files[file];
            unsynced.drain(..).for_each(|change| change.apply(certain));
        }
    }

    /// A sync that reported an error: what reached the disk did, what did not is forgotten.
    pub(crate) fn fail_to_sync_file(&mut self, file: FileId, random: &mut Random) {
        let File { certain, unsynced, .. } = &mut self.files[file];
        unsynced.drain(..).for_each(|change| change.apply_some(certain, random));
    }

    pub(crate) fn sync_folder(&mut self) {
        if self.lie != Some(Lie::Names) {
            self.names.values_mut().for_each(|history| drop(history.drain(..history.len() - 1)));
            self.names.retain(|_, history| *history != [None]);
        }
    }

    /// Puts into the folder what is there when the power comes back.
    pub(crate) fn lose_power(&mut self, loss: Loss, random: &mut Random) {
        for file in &mut self.files {
            let File { seen, certain, unsynced } = file;
            for change in unsynced.drain(..) {
                match loss {
                    Loss::All | Loss::Names => {}
                    Loss::None => change.apply(certain),
                    Loss::Some => change.apply_some(certain, random),
                }
            }
            seen.clone_from(certain);
        }
        for history in self.names.values_mut() {
            let place = match loss {
                Loss::All => 0,
                Loss::None | Loss::Names => history.len() - 1,
                Loss::Some => random.below(history.len()),
            };
            *history = vec![history[place]];
        }
        self.names.retain(|_, history| *history != [None]);
        for entry in fs::read_dir(&self.folder).expect("the folder is there") {
            fs::remove_file(entry.expect("it is read").path()).expect("it is ours");
        }
        let mut names: BTreeMap<FileId, PathBuf> = BTreeMap::new();
        for (name, history) in &self.names {
            let file = history[0].expect("names without a file are gone");
            let path = self.folder.join(name);
            match names.get(&file) {
                // Of a renamed file both names may be there.
                Some(other) => fs::hard_link(other, &path).expect("it is there"),
                None => fs::write(&path, &self.files[file].seen).expect("there is room"),
            }
            names.insert(file, path);
        }
    }

    /// Checks that this account of the folder is right: a call that it did not know would be a hole in the test.
    pub(crate) fn check(&self) -> Result<(), String> {
        let found: BTreeMap<String, Vec<u8>> = fs::read_dir(&self.folder)
            .expect("the folder is there")
            .map(|entry| {
                let path = entry.expect("it is read").path();
                let name = path.file_name().expect("it has a name").to_string_lossy().into_owned();
                (name, fs::read(path).expect("it is there"))
            })
            .collect();
        let expected: BTreeMap<String, Vec<u8>> =
            self.seen().map(|(name, content)| (name.to_owned(), content.to_vec())).collect();
        let lengths = |files: &BTreeMap<String, Vec<u8>>| -> Vec<(String, usize)> {
            files.iter().map(|(name, content)| (name.clone(), content.len())).collect()
        };
        match found == expected {
            true => Ok(()),
            false => Err(format!("the test missed a call: {:?} became {:?}", lengths(&expected), lengths(&found))),
        }
    }

    fn seen(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.names.iter().filter_map(|(name, history)| {
            let file = (*history.last().expect("a name has a meaning"))?;
            Some((name.as_str(), self.files[file].seen.as_slice()))
        })
    }

    fn mean(&mut self, name: &str, file: Option<FileId>) {
        self.names.entry(name.to_owned()).or_insert_with(|| vec![None]).push(file);
    }

    fn change(&mut self, file: FileId, change: Change) {
        change.clone().apply(&mut self.files[file].seen);
        self.files[file].unsynced.push(change);
    }
}

impl Change {
    fn apply(self, content: &mut Vec<u8>) {
        match self {
            Self::Write { offset, data } => put(content, offset, &data),
            Self::Resize(length) => content.resize(length, 0),
        }
    }

    /// Each sector that the change touches is old, new, torn within, or noise; never anything beside them.
    fn apply_some(self, content: &mut Vec<u8>, random: &mut Random) {
        match self {
            Self::Resize(length) => {
                if random.one_in(2) {
                    content.resize(length, 0);
                }
            }
            Self::Write { offset, data } => {
                let mut done = 0;
                while done < data.len() {
                    let length = (SECTOR - (offset + done) % SECTOR).min(data.len() - done);
                    let piece = &data[done..done + length];
                    match random.below(8) {
                        0..=3 => put(content, offset + done, piece),
                        4 => put(content, offset + done, &piece[..random.below(length)]),
                        5 => {
                            let noise: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
                            put(content, offset + done, &noise);
                        }
                        _ => {}
                    }
                    done += length;
                }
            }
        }
    }
}

fn put(content: &mut Vec<u8>, offset: usize, data: &[u8]) {
    if content.len() < offset + data.len() {
        content.resize(offset + data.len(), 0);
    }
    content[offset..offset + data.len()].copy_from_slice(data);
}

/// What a disk writes at once, at least.
const SECTOR: usize = 512;
