//! Resolves `[tls]`, and pairs certificates with keys. The files are not opened here; the TLS
//! implementation checks their contents.

use std::ops::Range;

use toml::Spanned;

use crate::code;
use crate::document::Document;
use crate::key::Key;
use crate::keys;
use crate::listen::{Certificate, Tls};
use crate::read::Values;
use crate::report::{Finding, Report};

/// Returns the certificates; `None` if there are none. `listen` has the address of the listener
/// that shows them.
pub(super) fn tls(document: &Document<'_>, listen: &Values, report: &mut Report) -> Option<Tls> {
    let values = document.section(&keys::TLS, report);
    let https = listen.given(&keys::HTTPS).map(|(_, at)| at);
    if values.refused(&keys::CERTIFICATES) || values.refused(&keys::KEYS) {
        return None;
    }
    let (chains, keys) = (paths(&values, &keys::CERTIFICATES), paths(&values, &keys::KEYS));
    if chains.len() != keys.len() {
        report.add(unequal(&values, chains.len(), keys.len()));
        return None;
    }
    match (https, values.given(&keys::CERTIFICATES)) {
        (Some(at), None) => report.add(no_certificate(at)),
        (None, Some((_, at))) if !listen.refused(&keys::HTTPS) => report.add(no_https(at)),
        _ => {}
    }
    let pairs = chains.iter().zip(keys);
    let certificates: Vec<Certificate> = pairs.map(|(chain, key)| pair(chain, key)).collect();
    (!certificates.is_empty()).then_some(Tls { certificates })
}

fn paths<'v>(values: &'v Values, key: &Key) -> &'v [Spanned<String>] {
    values.get(key).map_or(&[], |value| value.texts())
}

fn pair(chain: &Spanned<String>, key: &Spanned<String>) -> Certificate {
    Certificate { chain: chain.get_ref().into(), key: key.get_ref().into() }
}

fn unequal(values: &Values, chains: usize, keys: usize) -> Finding {
    let message =
        format!("`tls.certificates` and `tls.keys` have different lengths: {chains} and {keys}");
    let help =
        "write the key of each certificate at the same position in the other list".to_string();
    let places = [keys::CERTIFICATES, keys::KEYS].map(|key| values.given(&key).map(|(_, at)| at));
    match places {
        [Some(first), Some(at)] => {
            Finding::new(&code::PAIRS, at, message).help(help).elsewhere(first, "certificates")
        }
        [at, other] => {
            let at = at.or(other).unwrap_or_else(|| values.table());
            Finding::new(&code::PAIRS, at, message).help(help)
        }
    }
}

fn no_certificate(at: Range<usize>) -> Finding {
    let message = "`listen.https` has no certificate".to_string();
    let help = "name the files of the certificate and of its key in `certificates` and `keys` \
                under [tls]";
    Finding::new(&code::NO_CERTIFICATE, at, message).help(help.to_string())
}

fn no_https(at: Range<usize>) -> Finding {
    let message = "`tls.certificates` has no effect: there is no address for TLS".to_string();
    let help = "write https = \"0.0.0.0:443\" under [listen], or remove `certificates` and `keys`"
        .to_string();
    Finding::new(&code::NO_HTTPS, at, message).help(help)
}
