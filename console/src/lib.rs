//! The operators' console: the files that a browser loads, built into the program.
//!
//! The sources are in `web` (TypeScript). The files that are built from them are in `dist` and are
//! part of the repository, so building bywash needs a Rust toolchain and nothing else.
//! `scripts/test-console` checks that `dist` matches the sources.
#![forbid(unsafe_code)]

use std::io::Write;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::GzEncoder;

/// A file of the console.
#[derive(Debug)]
pub struct Asset {
    /// The media type.
    pub kind: &'static str,
    /// The content, uncompressed.
    pub bytes: &'static [u8],
    packed: LazyLock<Vec<u8>, Pack>,
}

type Pack = Box<dyn FnOnce() -> Vec<u8> + Send>;

impl Asset {
    fn new(kind: &'static str, bytes: &'static [u8]) -> Self {
        Self { kind, bytes, packed: LazyLock::new(Box::new(move || pack(bytes))) }
    }

    /// Returns the content, compressed with gzip. The first call compresses it; later calls return
    /// the result of the first.
    pub fn packed(&self) -> Vec<u8> {
        self.packed.clone()
    }
}

fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut to = GzEncoder::new(Vec::new(), Compression::best());
    to.write_all(bytes).and_then(|()| to.finish()).expect("writing to a vector does not fail")
}

macro_rules! assets {
    ($($path:literal => $file:literal, $kind:literal;)*) => {
        static ASSETS: LazyLock<Vec<(&'static str, Asset)>> = LazyLock::new(|| {
            vec![$(($path, Asset::new($kind, include_bytes!(concat!("../dist/", $file))))),*]
        });
    };
}

assets! {
    "/" => "index.html", "text/html; charset=utf-8";
    "/console.js" => "console.js", "text/javascript; charset=utf-8";
    "/console.css" => "console.css", "text/css; charset=utf-8";
    "/favicon.svg" => "favicon.svg", "image/svg+xml";
    "/LICENSES.txt" => "LICENSES.txt", "text/plain; charset=utf-8";
}

/// Returns the console's file at this path of the admin listener; `None` if there is no such file.
pub fn asset(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|(known, _)| *known == path).map(|(_, asset)| asset)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn every_file_can_be_unpacked_to_what_it_was() {
        for (path, asset) in ASSETS.iter() {
            let packed = asset.packed();
            let mut bytes = Vec::new();
            flate2::read::GzDecoder::new(&*packed).read_to_end(&mut bytes).unwrap();
            assert!(bytes == asset.bytes && !bytes.is_empty(), "{path}");
        }
        assert!(asset("/elsewhere").is_none());
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        let page = String::from_utf8_lossy(asset("/").unwrap().bytes);
        assert!(page.contains("console.js") && page.contains("console.css"), "{page}");
        for elsewhere in ["http://", "https://", "src=\"//", "<script>", "style=\"", "onclick"] {
            assert!(!page.contains(elsewhere), "{elsewhere}");
        }
    }
}
