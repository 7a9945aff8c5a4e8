// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FabricRoot: the device that file 0 of every connection is opened on. Answers the codes of
// verbs/control.h that are about the fabric or the process: Attach, channels, backings, events,
// views, status and trace. Ping, Shutdown, Keep, Open and Close belong to softibd.
//
// For softibd:
//   connect:   FileObject zero(root.device(), 0, client, nullptr);  send it Create
//   open:      look the path up, FileObject file(tree.resolve(..), n, client, &zero);  send Create
//   the connection ends, for whatever reason:
//              root.disconnect(zero), then cancel its requests, then Close for its files, zero
//              last.
// `disconnect` repairs and tears down on its own time; the Close requests do not wait for that.
//
// Thread rule: the reactor's thread, dispatch level.
#pragma once

#include "drivers/root/fabric_tree.h"
#include "io/device.h"
#include "verbs/control_status.h"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace ib::drivers {

class FabricRoot {
 public:
  // `cpus`: of this machine; 0: not known (drivers/sysfs/sysfs.h).
  explicit FabricRoot(FabricTree& tree, unsigned cpus = 0);
  ~FabricRoot();  // every file is closed by then

  io::DeviceObject& device();

  // The process behind this file 0 has gone (or has let go of us): its objects go too, and its
  // peers get errors (docs/design/0003-death.md). Idempotent. Close of file 0 does it as well,
  // but by then the HCA files may be gone and with them the order of things.
  void disconnect(io::FileObject& process);

  // softibd goes down in order: notifies every client through device memory and wakes it.
  void announce_shutdown();

  // For the verifier: what this file's process is about to leave behind (file 0: in all its HCAs),
  // and what is left once all have gone (drivers/soft_hca/lifetime/leftovers.h).
  std::vector<std::string> left_behind(const io::FileObject& file) const;
  std::vector<std::string> left_at_end() const;

  std::size_t attached_processes() const;
  // Of the state that Code::Status answers; `part` is its input, nullptr if it has none.
  nlohmann::ordered_json status(const control::StatusIn* part = nullptr) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ib::drivers
