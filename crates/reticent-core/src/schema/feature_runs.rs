//! Features in JSON: indices that follow one another and are of one kind stand there once, `{"name": "1", "through": "123", ...}`.

use serde::de::Error as _;
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{ENCODED_COLUMNS_MAX, Feature, FeatureKind};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run<K> {
    name: String,
    /// Name of the last feature; none where there is one alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    through: Option<String>,
    kind: K,
}

/// Whether an index is the next one, of the same kind.
pub(super) fn follows(one: &Feature, next: &Feature) -> bool {
    let (index, other): (Option<u64>, Option<u64>) = (one.name.parse().ok(), next.name.parse().ok());
    index.zip(other).is_some_and(|(index, other)| index.checked_add(1) == Some(other)) && one.kind == next.kind
}

pub(super) fn serialize<S: Serializer>(features: &[Feature], serializer: S) -> Result<S::Ok, S::Error> {
    let mut runs = serializer.serialize_seq(None)?;
    for run in features.chunk_by(follows) {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
        // Names such as 01 stand for themselves.
        let is_plain =
            run.iter().all(|feature| feature.name.parse().is_ok_and(|index: u64| index.to_string() == feature.name));
        if run.len() > 1 && is_plain {
            runs.serialize_element(&Run {
                name: first.name.clone(),
                through: Some(last.name.clone()),
                kind: &first.kind,
            })?;
        } else {
            run.iter().try_for_each(|feature| runs.serialize_element(feature))?;
        }
    }
    runs.end()
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Feature>, D::Error> {
    let runs: Vec<Run<FeatureKind>> = Vec::deserialize(deserializer)?;
    let mut features = Vec::new();
    for Run { name, through, kind } in runs {
        let Some(through) = through else {
            features.push(Feature { name, kind });
            continue;
        };
        let (Ok(first), Ok(last)) = (name.parse::<u64>(), through.parse::<u64>()) else {
            return Err(D::Error::custom("a run of features goes from one index through another"));
        };
        // A short text must not stand for more features than a schema may have.
        let length = last.saturating_sub(first).saturating_add(1);
        if last < first || length > (ENCODED_COLUMNS_MAX - features.len().min(ENCODED_COLUMNS_MAX)) as u64 {
            return Err(D::Error::custom(format!("features {first} through {last} are none, or too many")));
        }
        features.extend((first..=last).map(|index| Feature { name: index.to_string(), kind: kind.clone() }));
    }
    Ok(features)
}
