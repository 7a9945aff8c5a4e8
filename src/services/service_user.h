// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ServiceUser: who has a file of a service: a driver in softibd (al/service_file.h) or a program
// (verbs/services/open_service.h). Both have the same requests; what a program may not do is here.
#pragma once

#include "fabric/model.h"
#include "io/irp.h"

#include <cstdint>
#include <functional>
#include <string>

namespace ib::services {

struct ServiceUser {
  std::string name;
  std::string node;
  std::uint32_t pid = 0;  // 0: a driver
  // Whether the program has this queue pair. A request that names another one for an end of a
  // connection would end the connections of that one's owner: its peers would take them for stale.
  // Empty: a driver, which may.
  std::function<bool(const fabric::Hca& hca, std::uint32_t qpn)> owns_qp;

  bool may_use(const fabric::Hca& hca, std::uint32_t qpn) const {
    return !owns_qp || owns_qp(hca, qpn);
  }
};

// From the Create of a file. A program's has its ServiceUser as parameter.
ServiceUser user_of(const io::Irp& create);
// The HCA that Create names; nullptr, and the request has ended: none of the user's node.
const fabric::Hca* hca_of(const fabric::Fabric& fabric, const ServiceUser& user,
                          io::IrpRef& create);

}  // namespace ib::services
