//! The choice of a certificate by name (RFC 6066 section 3, RFC 9525 section 6.3).
//!
//! The names come from the certificates, so there is no separate table that an operator could
//! forget at a renewal. An exact name precedes a wildcard, and a wildcard stands for exactly one
//! label. If there are several certificates for one name, the client's signature schemes decide
//! between their kinds of keys. An ECDSA certificate for most clients and an RSA certificate for
//! old ones is usual. A client that asks for no name, or for an unknown one, gets a certificate for
//! the first name of the first certificate.

use std::collections::HashMap;
use std::sync::Arc;

use rustls::SignatureScheme;
use rustls::sign::CertifiedKey;
use rustls_pki_types::UnixTime;

use crate::pair::{self, Loaded};
use crate::{Expiry, Pair, TlsError, Warning};

/// The certificates for one name, each with another kind of key, in the order of the configuration.
type Choices = Vec<Arc<CertifiedKey>>;

/// The table of certificates by name. It never changes; a reload makes a new one.
#[derive(Debug)]
pub(crate) struct Names {
    exact: HashMap<String, Choices>,
    /// The certificates for each wildcard, by the name without the `*.`.
    wildcard: HashMap<String, Choices>,
    /// The certificates for all other names, at least one.
    default: Choices,
    /// The time at which each certificate expires, in the order of the configuration.
    expiries: Vec<Expiry>,
}

impl Names {
    /// Reads all pairs, and returns their table with the warnings. Fails at the first pair that
    /// cannot be used.
    pub(crate) fn load(pairs: &[Pair], now: UnixTime) -> Result<(Self, Vec<Warning>), TlsError> {
        let mut names = Self {
            exact: HashMap::new(),
            wildcard: HashMap::new(),
            default: Choices::new(),
            expiries: Vec::new(),
        };
        let mut warnings = Vec::new();
        let mut first_name = None;
        for pair in pairs {
            let loaded = pair::load(pair, now)?;
            if names.default.is_empty() {
                names.default.push(Arc::clone(&loaded.certified));
                first_name = loaded.names.first().cloned();
            }
            warnings.extend(names.add(pair, loaded));
        }
        if names.default.is_empty() {
            return Err(TlsError::NoPairs);
        }
        if let Some(choices) = first_name.and_then(|name| names.choices(&name)) {
            names.default = choices.clone();
        }
        Ok((names, warnings))
    }

    fn add(&mut self, pair: &Pair, loaded: Loaded) -> Vec<Warning> {
        let Loaded { certified, names, expiry, mut warnings } = loaded;
        self.expiries.push(expiry);
        for name in names {
            let choices = match name.strip_prefix("*.") {
                Some(parent) => self.wildcard.entry(parent.to_owned()).or_default(),
                None => self.exact.entry(name.clone()).or_default(),
            };
            let kind = certified.key.algorithm();
            if choices.iter().any(|earlier| earlier.key.algorithm() == kind) {
                warnings.push(Warning::Shadowed { path: pair.chain.clone(), name });
            } else {
                choices.push(Arc::clone(&certified));
            }
        }
        warnings
    }

    /// Returns the certificate for a client that asks for `name` and can verify `schemes`. If the
    /// client can verify none of several certificates, returns the first of them.
    pub(crate) fn choose(
        &self,
        name: Option<&str>,
        schemes: &[SignatureScheme],
    ) -> Option<Arc<CertifiedKey>> {
        let choices = name.and_then(|name| self.choices(name)).unwrap_or(&self.default);
        match choices.as_slice() {
            [only] => Some(Arc::clone(only)),
            several => several
                .iter()
                .find(|certified| certified.key.choose_scheme(schemes).is_some())
                .or(several.first())
                .cloned(),
        }
    }

    /// Returns the time at which each certificate expires, in the order of the configuration.
    pub(crate) fn expiries(&self) -> &[Expiry] {
        &self.expiries
    }

    /// Returns whether a certificate has this name.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.choices(name).is_some()
    }

    /// Returns the certificates for `name`, which must be in lower case, as rustls returns SNI.
    fn choices(&self, name: &str) -> Option<&Choices> {
        let name = name.strip_suffix('.').unwrap_or(name);
        if let Some(parent) = name.strip_prefix("*.") {
            return self.wildcard.get(parent);
        }
        self.exact.get(name).or_else(|| {
            let (_label, parent) = name.split_once('.')?;
            self.wildcard.get(parent)
        })
    }
}
