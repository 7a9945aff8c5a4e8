// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/net/namespaces.h"
#include "softib/doctor/doctor.h"

namespace ib::softib {

void check_network(Findings& findings) {
  const bool has_rights = os::net::has_network_rights();
  const os::net::Refusal missing = os::net::find_missing_facility();
  if (!missing) {
    findings.push_back(
        {"network of nodes",
         Level::Ok,
         has_rights ? "works, with the rights of this user" : "works, in a user namespace",
         {},
         {}});
    return;
  }
  findings.push_back({"network of nodes", Level::Warn, describe(missing),
                      "no `softib run --net`: programs have no IP over InfiniBand",
                      remedy(missing)});
}

}  // namespace ib::softib
