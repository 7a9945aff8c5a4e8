// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The names under which devices can be opened (docs/design/0010): directories, devices and links.
// Each virtual host has a tree of its own that hides the common one, as sessions have in NT.
//
// Opening follows links (reparse) to a device. A directory that stands for its only entry is
// followed too: \Device\ibal of a host with one HCA. As in NT, case does not matter; names keep the
// case in which they were made.
//
// Thread rule: the executor's thread.
#pragma once

#include "base/result.h"
#include "io/device.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ib::io {

class ObjectNamespace {
 public:
  enum class Kind : std::uint8_t { Directory, Device, Link };
  struct Entry {  // for listings
    std::string name;
    Kind kind = Kind::Directory;
    std::string target;  // of a link
    std::string device;  // name of the device and its driver
  };

  ObjectNamespace();
  ~ObjectNamespace();

  // Paths are "\Device\ibal\...": `host` empty is the tree that all hosts share. Returns NotFound
  // if a parent does not exist, AlreadyExists if the name is taken.
  [[nodiscard]] Status add_directory(std::string_view host, std::string_view path,
                                     bool stands_for_only_entry = false);
  // Borrows the device: remove the name before it goes.
  [[nodiscard]] Status add_device(std::string_view host, std::string_view path,
                                  DeviceObject& device);
  [[nodiscard]] Status add_link(std::string_view host, std::string_view path,
                                std::string_view target);
  // Returns NotFound, or DeviceBusy for a directory that is not empty.
  [[nodiscard]] Status remove(std::string_view host, std::string_view path);

  // Returns the top of the stack of the device that this opens. NotFound: no such name;
  // InvalidParameter: it names no device, or one of several. `reason` lists the existing names.
  Result<DeviceObject*> open(std::string_view host, std::string_view path,
                             std::string& reason) const;
  // The entries of a directory, by name. Links in the path are followed.
  Result<std::vector<Entry>> list(std::string_view host, std::string_view path,
                                  std::string& reason) const;

 private:
  struct Object;
  struct ByName {
    using is_transparent = void;
    bool operator()(std::string_view a, std::string_view b) const;
  };

  Object* directory_of(std::string_view host, std::string_view path, std::string_view& name) const;
  [[nodiscard]] Status add(std::string_view host, std::string_view path,
                           std::unique_ptr<Object> object);
  const Object* find(std::string_view host, std::string_view path) const;
  // Follows links of all components; of the last one if `to_device`.
  const Object* find_deepest(std::string_view host, std::string_view path, std::size_t& end) const;
  Result<const Object*> walk(std::string_view host, std::string path, bool to_device,
                             std::string& reason) const;

  std::map<std::string, std::unique_ptr<Object>, std::less<>> hosts_;  // roots
};

}  // namespace ib::io
