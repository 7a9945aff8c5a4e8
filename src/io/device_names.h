// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The names under which devices can be opened (DESIGN.md 2). Every virtual host has its own
// \Device\ibal, a directory of HCAs; opening \Device\ibal\<CA GUID> is reparsed to the device of
// that HCA, and opening the directory itself to its only HCA. As in NT, case does not matter.
#pragma once

#include "base/result.h"
#include "io/device.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace ib::io {

class DeviceNames {
 public:
  // AlreadyExists: the host has an HCA of that GUID.
  [[nodiscard]] Status add_hca(std::string_view host, std::uint64_t guid, DeviceObject& device);
  void remove_hca(std::string_view host, std::uint64_t guid);

  // The top of the device's stack. NotFound: no such name; InvalidParameter: the path names no HCA,
  // or not which one of several. `reason` says what there is.
  Result<DeviceObject*> resolve(std::string_view host, std::string_view path,
                                std::string& reason) const;

 private:
  using Directory = std::map<std::uint64_t, DeviceObject*>;  // by GUID
  std::map<std::string, Directory, std::less<>> hosts_;
};

}  // namespace ib::io
