//! The heads of the requests of readers and scrapers.
//!
//! The readers' heads are those of real browsers. The scrapers claim to be a browser in
//! `User-Agent`, but the rest of the head is that of their HTTP library.

use bywash_load::Head;

const CHROME_ACCEPT: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,\
                             image/webp,image/apng,*/*;q=0.8,\
                             application/signed-exchange;v=b3;q=0.7";
const CHROME_BRANDS: &str = r#""Chromium";v="140", "Not=A?Brand";v="24", "Google Chrome";v="140""#;
const ANDROID: &str = "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) \
                       Chrome/140.0.0.0 Mobile Safari/537.36";
const WINDOWS: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like \
                       Gecko) Chrome/140.0.0.0 Safari/537.36";
const IPHONE: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) \
                      AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 \
                      Safari/604.1";
const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0";

/// Returns the head of Chrome on a platform.
macro_rules! chrome {
    ($platform:literal, $mobile:literal, $agent:ident, $languages:literal) => {
        Head {
            page: &[
                ("connection", "keep-alive"),
                ("sec-ch-ua", CHROME_BRANDS),
                ("sec-ch-ua-mobile", $mobile),
                ("sec-ch-ua-platform", $platform),
                ("upgrade-insecure-requests", "1"),
                ("user-agent", $agent),
                ("accept", CHROME_ACCEPT),
                ("sec-fetch-site", "none"),
                ("sec-fetch-mode", "navigate"),
                ("sec-fetch-user", "?1"),
                ("sec-fetch-dest", "document"),
                ("accept-encoding", "gzip, deflate, br, zstd"),
                ("accept-language", $languages),
            ],
            file: &[
                ("connection", "keep-alive"),
                ("sec-ch-ua-platform", $platform),
                ("user-agent", $agent),
                ("sec-ch-ua", CHROME_BRANDS),
                ("sec-ch-ua-mobile", $mobile),
                ("accept", "*/*"),
                ("sec-fetch-site", "same-origin"),
                ("sec-fetch-mode", "no-cors"),
                ("accept-encoding", "gzip, deflate, br, zstd"),
                ("accept-language", $languages),
            ],
        }
    };
}

/// The readers' heads, the most frequent first.
pub(super) const READERS: [Head; 5] = [
    chrome!("\"Android\"", "?1", ANDROID, "en-GB,en-US;q=0.9,en;q=0.8"),
    chrome!("\"Windows\"", "?0", WINDOWS, "en-US,en;q=0.9"),
    Head {
        page: &[
            ("sec-fetch-dest", "document"),
            ("user-agent", IPHONE),
            ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
            ("sec-fetch-site", "none"),
            ("sec-fetch-mode", "navigate"),
            ("accept-language", "en-GB,en;q=0.9"),
            ("priority", "u=0, i"),
            ("accept-encoding", "gzip, deflate"),
            ("connection", "keep-alive"),
        ],
        file: &[
            ("sec-fetch-dest", "image"),
            ("user-agent", IPHONE),
            ("accept", "*/*"),
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-mode", "no-cors"),
            ("accept-language", "en-GB,en;q=0.9"),
            ("priority", "u=5, i"),
            ("accept-encoding", "gzip, deflate"),
            ("connection", "keep-alive"),
        ],
    },
    Head {
        page: &[
            ("user-agent", FIREFOX),
            ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
            ("accept-language", "en-US,en;q=0.5"),
            ("accept-encoding", "gzip, deflate, br, zstd"),
            ("connection", "keep-alive"),
            ("upgrade-insecure-requests", "1"),
            ("sec-fetch-dest", "document"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-site", "none"),
            ("sec-fetch-user", "?1"),
            ("priority", "u=0, i"),
        ],
        file: &[
            ("user-agent", FIREFOX),
            ("accept", "*/*"),
            ("accept-language", "en-US,en;q=0.5"),
            ("accept-encoding", "gzip, deflate, br, zstd"),
            ("connection", "keep-alive"),
            ("sec-fetch-dest", "image"),
            ("sec-fetch-mode", "no-cors"),
            ("sec-fetch-site", "same-origin"),
            ("priority", "u=5, i"),
        ],
    },
    // A text browser requests no files of a page.
    Head {
        page: &[
            ("accept", "text/html, text/plain, text/sgml, text/css, */*;q=0.01"),
            ("accept-encoding", "gzip, compress, bzip2"),
            ("accept-language", "en"),
            ("user-agent", "Lynx/2.9.2 libwww-FM/2.14 SSL-MM/1.4.1 GNUTLS/3.8.9"),
        ],
        file: &[],
    },
];

/// The scrapers' heads: those of Python's `requests`, of Go's `net/http` and of Scrapy.
pub(super) const SCRAPERS: [Head; 3] = [
    Head {
        page: &[
            ("user-agent", WINDOWS),
            ("accept-encoding", "gzip, deflate"),
            ("accept", "*/*"),
            ("connection", "keep-alive"),
        ],
        file: &[],
    },
    Head { page: &[("user-agent", WINDOWS), ("accept-encoding", "gzip")], file: &[] },
    Head {
        page: &[
            ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
            ("accept-language", "en"),
            ("user-agent", ANDROID),
            ("accept-encoding", "gzip, deflate"),
        ],
        file: &[],
    },
];
