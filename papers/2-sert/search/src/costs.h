// Prints the costs of randomly drawn requests, to show their distribution.
#pragma once

#include "service.h"

namespace search {

// Prints the microseconds of processor time of this many requests, one a line. Returns 0, or 1 if a write fails.
int print_costs(const Service &service, long requests);

}  // namespace search
