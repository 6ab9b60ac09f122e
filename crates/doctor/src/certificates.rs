//! Checks the certificates that a configuration names. `bywash check` and `bywash doctor` use the
//! checks to report what the gateway would reject at its start.

use bywash_config::{Certificate, Config, Scheme, Upstream};
use bywash_tls::{ClientOptions, Pair, Protocols, TlsError, Warning};

/// The problems of the certificates that a configuration names.
#[derive(Debug, Default)]
pub struct CertificateProblems {
    /// The problems that prevent the start of the gateway.
    pub errors: Vec<TlsError>,
    /// The problems with which the gateway still starts.
    pub warnings: Vec<Warning>,
}

impl CertificateProblems {
    /// Reads every file that `config` names for TLS towards clients and servers, and returns the
    /// problems.
    pub fn of(config: &Config) -> Self {
        let mut certificate_problems = Self::default();
        if let Some(tls) = &config.tls {
            let pairs: Vec<Pair> = tls.certificates.iter().map(pair).collect();
            certificate_problems.add(bywash_tls::check(&pairs));
        }
        if config.upstream.servers.iter().any(|server| server.scheme == Scheme::Https) {
            certificate_problems.add(check_upstream(&config.upstream));
        }
        certificate_problems
    }

    /// Returns whether there are no problems.
    pub fn is_empty(&self) -> bool {
        self.errors.is_empty() && self.warnings.is_empty()
    }

    fn add(&mut self, checked: Result<Vec<Warning>, TlsError>) {
        match checked {
            Ok(warnings) => self.warnings.extend(warnings),
            Err(error) => self.errors.push(error),
        }
    }
}

fn pair(certificate: &Certificate) -> Pair {
    Pair { chain: certificate.chain.clone(), key: certificate.key.clone() }
}

/// Checks the files with which the gateway acts as a TLS client of its servers, and returns
/// warnings. No other check reads these files.
fn check_upstream(upstream: &Upstream) -> Result<Vec<Warning>, TlsError> {
    bywash_tls::client(client_options(upstream, true))?;
    let Some((chain, key)) = upstream.tls.certificate.clone().zip(upstream.tls.key.clone()) else {
        return Ok(Vec::new());
    };
    let mut warnings = bywash_tls::check(&[Pair { chain, key }])?;
    warnings.retain(concerns_a_client);
    Ok(warnings)
}

/// Returns the TLS options for connections to the servers of `upstream`.
pub(crate) fn client_options(upstream: &Upstream, http2: bool) -> ClientOptions {
    let tls = &upstream.tls;
    ClientOptions {
        ca: tls.ca.clone(),
        name: tls.name.clone(),
        certificate: tls.certificate.clone().zip(tls.key.clone()),
        protocols: Protocols::http(http2),
    }
}

/// Returns whether a warning matters for a certificate that is shown to servers.
fn concerns_a_client(warning: &Warning) -> bool {
    match warning {
        Warning::Expired { .. }
        | Warning::ExpiresSoon { .. }
        | Warning::NotYetValid { .. }
        | Warning::KeyReadable { .. } => true,
        Warning::NotForServers { .. } | Warning::NoNames { .. } | Warning::Shadowed { .. } => false,
    }
}
