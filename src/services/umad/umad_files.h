// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// UmadFiles: all open umad files of a fabric.
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "fabric/model.h"

#include <cstdint>
#include <set>

namespace ib::services {

class UmadFile;

class UmadFiles {
 public:
  explicit UmadFiles(const fabric::Fabric& fabric) : fabric_(fabric) {}

  void add(UmadFile& file) { files_.insert(&file); }
  void remove(UmadFile& file) { files_.erase(&file); }
  const std::set<UmadFile*>& all() const { return files_; }

  // The HCA is gone.
  void end_those_of(const fabric::Hca& hca);
  // A program that has closed its file expects that its agents are gone. Returns whether there was
  // one at this port.
  bool end_those_that_have_gone(std::uint32_t port);

 private:
  const fabric::Fabric& fabric_;
  std::set<UmadFile*> files_;
};

}  // namespace ib::services
