//! `/v1/lab`: results of the laboratory, from the folder `console.results` of the configuration
//! file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The list of available results of the laboratory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabResults {
    /// The path of the folder with the results; `null` if the configuration file names none.
    pub folder: Option<String>,
    /// Why the folder cannot be read; `null` if it can.
    pub trouble: Option<String>,
    /// The results, the newest first. Each is available at `/v1/lab/NAME`, as written by `bywash
    /// lab … --json`.
    pub results: Vec<LabResult>,
}

/// A file with a result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabResult {
    /// The name of the file.
    pub name: String,
    /// The length of the file, in bytes.
    pub bytes: u64,
    /// When the file was last modified, in milliseconds since 1970.
    pub written_ms: u64,
}
