//! The presets of `bywash init`: one file for each application.

macro_rules! presets {
    ($($name:literal)*) => { [$(($name, include_str!(concat!($name, ".toml")))),*] };
}

/// The presets: names and texts.
pub(crate) const PRESETS: [(&str, &str); 10] = presets!(
    "wordpress" "woocommerce" "mediawiki" "drupal" "magento" "prestashop" "django" "rails" "laravel" "php-fpm"
);
