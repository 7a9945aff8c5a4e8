// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ArenaMapping: the device memory of a fabric as it is mapped into this process.
#pragma once

#include "hca/layout/arena.h"
#include "platform/client_host.h"

#include <memory>
#include <string>

namespace ib::user {

class ArenaMapping {
 public:
  // Maps the file that softibd gave. Malformed: it is no device memory of this layout.
  Status map(platform::ClientHost& host, const platform::NativeHandle& file, std::string& reason);
  // After map().
  hca::Arena arena() const { return {mapping_->base(), *file_}; }

 private:
  std::unique_ptr<platform::MappedFile> mapping_;
  std::unique_ptr<hca::ArenaFile> file_;
};

}  // namespace ib::user
