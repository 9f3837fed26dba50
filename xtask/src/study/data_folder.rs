//! Public tables that do not come with the repository: where they are read, and where they come from.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Folder of a file in the data folder, and where it comes from.
const SOURCES: [(&str, &str); 9] = [
    ("kddcup99", "KDD Cup 1999, the 10 % file, gzip: https://kdd.ics.uci.edu/databases/kddcup99/"),
    (
        "covertype",
        "Covertype of Blackard 1998, https://archive.ics.uci.edu/dataset/31: some rows without a header, their number in the \
         file before the 54 features and the class, xz",
    ),
    ("mnist", "MNIST of LeCun, Cortes and Burges, the four IDX files, gzip: https://yann.lecun.com/exdb/mnist/"),
    (
        "reuters21578",
        "Reuters-21578 of Lewis 1997, ModApte: logarithms of term counts, rows of norm 1, as libsvm, xz; \
         earn_train, earn_test (-1, 1) and r8_train, r8_test (0 to 7)",
    ),
    (
        "uci_regression",
        "https://github.com/treforevans/uci_datasets: one CSV a table without a header, last column the target, gzip",
    ),
    ("california_housing", "https://github.com/ageron/handson-ml2, datasets/housing/housing.csv, compressed with xz"),
    ("hoseinpour_pretraining", "https://github.com/hpourv/DP-Logistic-Regression, Data.csv"),
    ("wisdm", "WISDM activity prediction 1.1, transformed: https://www.cis.fordham.edu/wisdm/dataset.php, xz"),
    (
        "vehicle_sensor",
        "the training part of the vehicle data of https://github.com/litian96/ditto as CSV without a header (device, \
         100 features, -1 or 1), xz",
    ),
];

pub(super) struct DataFolder(Option<PathBuf>);

impl DataFolder {
    pub(super) fn new(folder: Option<PathBuf>) -> Self {
        Self(folder)
    }

    /// The text of a file, decompressed.
    pub(super) fn text(&self, place: &str) -> Result<String, String> {
        let bytes = self.bytes(place)?;
        String::from_utf8(bytes).map_err(|error| format!("{place}: {error}"))
    }

    pub(super) fn bytes(&self, place: &str) -> Result<Vec<u8>, String> {
        let Some(folder) = &self.0 else {
            return Err(format!("this study reads {place}: give its folder with --data. Source: {}", source(place)));
        };
        let path = folder.join(place);
        read_bytes(&path).map_err(|error| format!("{}: {error}. Source: {}", path.display(), source(place)))
    }
}

fn source(place: &str) -> &'static str {
    let of_criteo = "https://github.com/criteo-research/ad_click_prediction_from_aggregated_data, the small train and valid \
                     tables as CSV, xz; for research only";
    SOURCES.iter().find(|(folder, _)| place.starts_with(folder)).map_or(of_criteo, |(_, source)| source)
}

pub(super) fn read(path: &Path) -> std::io::Result<String> {
    String::from_utf8(read_bytes(path)?).map_err(std::io::Error::other)
}

fn read_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => liblzma::read::XzDecoder::new(file).read_to_end(&mut bytes)?,
        Some("gz") => flate2::read::MultiGzDecoder::new(file).read_to_end(&mut bytes)?,
        Some(_) | None => file.read_to_end(&mut bytes)?,
    };
    Ok(bytes)
}
