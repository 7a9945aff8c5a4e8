// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softibd/umad/umad_json.h"

#include <algorithm>

namespace ib::softib {

// In the order of processes: the files themselves have none.
nlohmann::ordered_json umad_json(const fabric::Fabric& fabric,
                                 const services::UmadService& service) {
  std::vector<nlohmann::ordered_json> files;
  for (const services::UmadFile* file : service.files().all()) {
    const fabric::Port& port = *fabric.graph().port(file->port());
    const fabric::Hca* hca = fabric.hca_of(port);
    if (hca == nullptr) continue;
    files.push_back({{"pid", file->opener().pid},
                     {"node", fabric.node_of(*hca).name},
                     {"hca", hca->name},
                     {"port", port.number},
                     {"program", file->opener().program},
                     {"agents", file->agents()},
                     {"unread", file->unread()},
                     {"lost", file->lost()}});
  }
  std::ranges::sort(files, {}, [](const auto& file) { return file["pid"].template get<int>(); });
  return {{"files", std::move(files)}, {"under_way", service.under_way()}};
}

}  // namespace ib::softib
