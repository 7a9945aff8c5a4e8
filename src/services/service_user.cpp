// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/service_user.h"

#include "al/service_file.h"

#include <algorithm>
#include <utility>

namespace ib::services {

ServiceUser user_of(const io::Irp& create) {
  if (const auto* program = create.parameters.get<ServiceUser>()) return *program;
  ServiceUser driver;
  driver.node = create.file->client().node;
  if (const auto in = create.input<al::ServiceOpenIn>()) {
    driver.name.assign(in->driver.begin(), std::ranges::find(in->driver, '\0'));
  }
  return driver;
}

const fabric::Hca* hca_of(const fabric::Fabric& fabric, const ServiceUser& user,
                          io::IrpRef& create) {
  const auto in = create->input<al::ServiceOpenIn>();
  const fabric::Hca* hca = in ? fabric.find_hca(in->ca_index) : nullptr;
  if (hca == nullptr || fabric.node_of(*hca).name != user.node) {
    std::move(create).fail(Status::NotFound, "there is no such HCA");
    return nullptr;
  }
  if (!hca->present) {
    std::move(create).fail(Status::DeviceRemoved, "HCA " + hca->name + " was pulled out");
    return nullptr;
  }
  return hca;
}

}  // namespace ib::services
