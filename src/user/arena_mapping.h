// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ArenaMapping: the device memory of a fabric as it is mapped into this process.
#pragma once

#include "hca/layout/arena.h"
#include "platform/client_host.h"
#include "user/api.h"
#include "user/control_connection.h"

#include <memory>
#include <string>

namespace ib::user {

class ArenaMapping {
 public:
  // Attaches this process to softibd by its main connection, and maps the device memory that it
  // gives. Malformed: an answer or device memory of another version.
  Status attach(platform::ClientHost& host, ControlConnection& connection,
                const ProcessOptions& options, control::AttachOut& out, std::string& reason);
  // After attach().
  hca::Arena arena() const { return {mapping_->base(), *file_}; }

 private:
  Status map(platform::ClientHost& host, const platform::NativeHandle& file, std::string& reason);

  std::unique_ptr<platform::MappedFile> mapping_;
  std::unique_ptr<hca::ArenaFile> file_;
};

}  // namespace ib::user
