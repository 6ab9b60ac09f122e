//! The reasons why handshakes with clients fail, in a few values that can be counted.
//!
//! The library's error says how the protocol was violated, and the client's first message says
//! which name it asked for. So two cases can be distinguished: a client rejects the certificate
//! because no certificate has the name, or it does not trust the issuer.

use std::io;

use rustls::{AlertDescription, Error, InvalidMessage, PeerIncompatible};

/// The reason why a handshake with a client failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeFailure {
    /// The connection ended before the handshake did.
    Gone,
    /// The client sent something other than TLS.
    NotTls,
    /// The client offers neither TLS 1.2 nor a later version.
    OldVersion,
    /// The two sides have no cipher suite, key exchange, signature scheme or protocol in common.
    NothingInCommon,
    /// The client rejected the certificate, and no certificate has the name that it asked for.
    UnknownName,
    /// The client rejected the certificate, although it has the name or the client asked for none.
    CertificateRefused,
    /// The client ended the handshake with another alert.
    ClientAlert,
    /// Another failure, such as a message that breaks the protocol.
    Other,
}

impl HandshakeFailure {
    /// All variants, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::Gone,
        Self::NotTls,
        Self::OldVersion,
        Self::NothingInCommon,
        Self::UnknownName,
        Self::CertificateRefused,
        Self::ClientAlert,
        Self::Other,
    ];

    /// Returns the failure's name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::NotTls => "not_tls",
            Self::OldVersion => "old_version",
            Self::NothingInCommon => "nothing_in_common",
            Self::UnknownName => "unknown_name",
            Self::CertificateRefused => "certificate_refused",
            Self::ClientAlert => "client_alert",
            Self::Other => "other",
        }
    }

    /// Returns the reason for a handshake's error. `knows_name` is whether a certificate has the
    /// name that the client asked for; it is also true if the client asked for no name.
    pub(crate) fn of(error: &io::Error, knows_name: bool) -> Self {
        match error.get_ref().and_then(|error| error.downcast_ref::<Error>()) {
            Some(error) => Self::of_protocol(error, knows_name),
            None => Self::Gone,
        }
    }

    fn of_protocol(error: &Error, knows_name: bool) -> Self {
        match error {
            Error::AlertReceived(alert) if is_about_certificate(*alert) => {
                if knows_name { Self::CertificateRefused } else { Self::UnknownName }
            }
            Error::AlertReceived(_) => Self::ClientAlert,
            // The bytes are not a TLS record. The library looks at the first bytes only.
            Error::InvalidMessage(
                InvalidMessage::InvalidContentType
                | InvalidMessage::UnknownProtocolVersion
                | InvalidMessage::MessageTooLarge,
            ) => Self::NotTls,
            Error::PeerIncompatible(
                PeerIncompatible::Tls12NotOffered
                | PeerIncompatible::Tls12NotOfferedOrEnabled
                | PeerIncompatible::SupportedVersionsExtensionRequired
                // Clients send this extension from TLS 1.2 on, and the library looks for it before
                // it looks at versions.
                | PeerIncompatible::SignatureAlgorithmsExtensionRequired,
            ) => Self::OldVersion,
            Error::PeerIncompatible(_) | Error::NoApplicationProtocol => Self::NothingInCommon,
            _ => Self::Other,
        }
    }
}

const fn is_about_certificate(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
    )
}
