//! Reads a certificate and its key, checks that they belong together, and finds the certificate's
//! names.
//!
//! The names are the subject alternative names. The common name is ignored, as in all clients that
//! verify certificates (RFC 9525 section 2).

use std::sync::Arc;
use std::time::Duration;

use rustls::sign::{CertifiedKey, SigningKey};
use rustls::{Error, InconsistentKeys};
use rustls_pki_types::{CertificateDer, UnixTime};
use webpki::{EndEntityCert, KeyUsage};

use crate::{Expiry, Pair, TlsError, Warning, pem, provider};

/// The time before its expiry from which on a certificate causes a warning. Certificates that live
/// 90 days are renewed 30 days before their expiry (Let's Encrypt's advice). Two weeks before it,
/// the renewal has already failed for a while.
const EXPIRY_WARNING: Duration = Duration::from_secs(14 * DAY);
const DAY: u64 = 86_400;

/// The first second of the year 10000, in seconds since 1970. No certificate can name a later time
/// (RFC 5280 section 4.1.2.5.2).
const MAX_EXPIRY: u64 = 253_402_300_800;

/// A certificate with its key, as it can be served.
pub(crate) struct Loaded {
    pub(crate) certified: Arc<CertifiedKey>,
    /// The names in lower case; a wildcard as `*.example.org`.
    pub(crate) names: Vec<String>,
    pub(crate) expiry: Expiry,
    pub(crate) warnings: Vec<Warning>,
}

/// Reads the two files of a pair. `now` is used for warnings only.
pub(crate) fn load(pair: &Pair, now: UnixTime) -> Result<Loaded, TlsError> {
    let chain = pem::certificates(&pair.chain)?;
    let (key, mode) = signing_key(pair)?;
    let certified = belonging(pair, chain, key)?;
    let leaf = certified.end_entity_cert().ok().and_then(|der| EndEntityCert::try_from(der).ok());
    let leaf = leaf.expect("it was parsed when it was compared with its key");
    let names: Vec<_> = leaf.valid_dns_names().map(str::to_ascii_lowercase).collect();
    let mut warnings: Vec<_> = validity(pair, &leaf, now).into_iter().collect();
    if names.is_empty() {
        warnings.push(Warning::NoNames { path: pair.chain.clone() });
    }
    if mode & 0o007 != 0 {
        warnings.push(Warning::KeyReadable { path: pair.key.clone(), mode });
    }
    let expiry = Expiry { path: pair.chain.clone(), not_after: not_after(&leaf) };
    Ok(Loaded { certified: Arc::new(certified), names, expiry, warnings })
}

/// Reads the key of a pair. Also returns the permission bits of its file.
fn signing_key(pair: &Pair) -> Result<(Arc<dyn SigningKey>, u32), TlsError> {
    let pem::Key { der, mode } = pem::key(&pair.key)?;
    let key = provider()
        .key_provider
        .load_private_key(der)
        .map_err(|error| TlsError::BadKey { path: pair.key.clone(), reason: error.to_string() })?;
    Ok((key, mode))
}

fn belonging(
    pair: &Pair,
    chain: Vec<CertificateDer<'static>>,
    key: Arc<dyn SigningKey>,
) -> Result<CertifiedKey, TlsError> {
    for (index, certificate) in chain.iter().enumerate() {
        EndEntityCert::try_from(certificate).map_err(|error| TlsError::BadCertificate {
            path: pair.chain.clone(),
            place: index + 1,
            reason: error.to_string(),
        })?;
    }
    let matches = |certificate: &CertificateDer<'static>| {
        let alone = CertifiedKey::new(vec![certificate.clone()], Arc::clone(&key));
        // An unknown result does not count as a mismatch. No key of ring gives such a result.
        matches!(alone.keys_match(), Ok(()) | Err(Error::InconsistentKeys(UNKNOWN)))
    };
    match chain.iter().position(matches) {
        Some(0) => Ok(CertifiedKey::new(chain, key)),
        Some(index) => Err(TlsError::LeafNotFirst {
            chain: pair.chain.clone(),
            key: pair.key.clone(),
            place: index + 1,
        }),
        None => Err(TlsError::KeyMismatch { chain: pair.chain.clone(), key: pair.key.clone() }),
    }
}

const UNKNOWN: InconsistentKeys = InconsistentKeys::Unknown;

/// Returns the fault for which clients reject the certificate, whatever its issuer. Returns `None`
/// if there is no such fault.
///
/// webpki does not expose the dates, but checks them and the purpose before it looks for an issuer.
/// No issuers are given here, so every other result is "unknown issuer" or concerns the issuer, and
/// is ignored.
fn validity(pair: &Pair, leaf: &EndEntityCert<'_>, now: UnixTime) -> Option<Warning> {
    let path = pair.chain.clone();
    let seen = |at| leaf.verify_for_usage(&[], &[], &[], at, KeyUsage::server_auth(), None, None);
    match seen(now).err()? {
        webpki::Error::CertExpired { not_after, .. } => {
            let days = now.as_secs().saturating_sub(not_after.as_secs()) / DAY;
            return Some(Warning::Expired { path, days });
        }
        webpki::Error::CertNotValidYet { .. } => return Some(Warning::NotYetValid { path }),
        webpki::Error::RequiredEkuNotFoundContext(_) => {
            return Some(Warning::NotForServers { path });
        }
        _ => {}
    }
    let soon = UnixTime::since_unix_epoch(Duration::from_secs(now.as_secs()) + EXPIRY_WARNING);
    match seen(soon).err()? {
        webpki::Error::CertExpired { not_after, .. } => {
            let days = not_after.as_secs().saturating_sub(now.as_secs()) / DAY;
            Some(Warning::ExpiresSoon { path, days })
        }
        _ => None,
    }
}

/// Returns the time at which a certificate expires, in seconds since 1970. webpki reports that time
/// only for a certificate that has expired. This function therefore verifies the certificate as if
/// the time were [`MAX_EXPIRY`], when every certificate has expired.
fn not_after(leaf: &EndEntityCert<'_>) -> u64 {
    let end = UnixTime::since_unix_epoch(Duration::from_secs(MAX_EXPIRY));
    match leaf.verify_for_usage(&[], &[], &[], end, KeyUsage::server_auth(), None, None) {
        Err(webpki::Error::CertExpired { not_after, .. }) => not_after.as_secs(),
        // The certificate's dates contradict each other, so it was never valid.
        Ok(_) | Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, KeyPair, date_time_ymd};

    use super::*;

    /// Reads a certificate that is valid in 2030, as if the time were `seconds` since 1970.
    fn loaded_on(seconds: i64, purpose: ExtendedKeyUsagePurpose) -> Loaded {
        let place = tempfile::tempdir().unwrap();
        let key = KeyPair::generate().unwrap();
        let mut certificate = CertificateParams::new(["a.test".to_owned()]).unwrap();
        certificate.not_before = date_time_ymd(2030, 1, 1);
        certificate.not_after = date_time_ymd(2031, 1, 1);
        certificate.extended_key_usages = vec![purpose];
        let pair = Pair { chain: place.path().join("a.pem"), key: place.path().join("a.key") };
        fs::write(&pair.chain, certificate.self_signed(&key).unwrap().pem()).unwrap();
        fs::write(&pair.key, key.serialize_pem()).unwrap();
        fs::set_permissions(&pair.key, fs::Permissions::from_mode(0o600)).unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds.try_into().unwrap()));
        load(&pair, now).unwrap()
    }

    /// Returns the warnings about the certificate of [`loaded_on`] at this time.
    fn warnings_on(seconds: i64, purpose: ExtendedKeyUsagePurpose) -> Vec<Warning> {
        let mut warnings = loaded_on(seconds, purpose).warnings;
        for warning in &mut warnings {
            let (Warning::Expired { path, .. }
            | Warning::ExpiresSoon { path, .. }
            | Warning::NotYetValid { path }
            | Warning::NotForServers { path }
            | Warning::NoNames { path }
            | Warning::Shadowed { path, .. }
            | Warning::KeyReadable { path, .. }) = warning;
            *path = path.file_name().unwrap().into();
        }
        warnings
    }

    fn on(year: i32, month: u8, day: u8) -> Vec<Warning> {
        let seconds = date_time_ymd(year, month, day).unix_timestamp();
        warnings_on(seconds, ExtendedKeyUsagePurpose::ServerAuth)
    }

    #[test]
    fn the_end_of_a_certificate_is_known_at_any_time_and_whatever_it_is_for() {
        let end = date_time_ymd(2031, 1, 1).unix_timestamp();
        for now in [end - 86_400, end + 86_400, 0] {
            for purpose in
                [ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth]
            {
                let not_after = loaded_on(now, purpose).expiry.not_after;
                assert_eq!(i64::try_from(not_after).unwrap(), end);
            }
        }
    }

    #[test]
    fn nothing_is_said_about_a_certificate_in_its_time() {
        assert_eq!(on(2030, 6, 1), []);
    }

    #[test]
    fn an_expired_certificate_is_a_warning_with_its_age() {
        assert_eq!(on(2031, 1, 11), [Warning::Expired { path: "a.pem".into(), days: 10 }]);
    }

    #[test]
    fn the_last_two_weeks_are_a_warning() {
        assert_eq!(on(2030, 12, 18), []);
        assert_eq!(on(2030, 12, 19), [Warning::ExpiresSoon { path: "a.pem".into(), days: 13 }]);
    }

    #[test]
    fn a_certificate_of_tomorrow_is_a_warning() {
        assert_eq!(on(2029, 12, 31), [Warning::NotYetValid { path: "a.pem".into() }]);
    }

    #[test]
    fn a_certificate_for_clients_only_is_a_warning() {
        let now = date_time_ymd(2030, 6, 1).unix_timestamp();
        let warnings = warnings_on(now, ExtendedKeyUsagePurpose::ClientAuth);
        assert_eq!(warnings, [Warning::NotForServers { path: "a.pem".into() }]);
    }
}
