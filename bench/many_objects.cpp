// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Many objects of each kind, so that the cost of one can be measured.
//   bench_many_objects [COUNT]
// Prints a line of JSON for each phase and then waits for a line on stdin:
//   {"phase": "none"}                              before all of them
//   {"phase": "pd", "create_us": ...}, "mr" ...    when COUNT of the kind were made; all stay
//   {"phase": "gone", "pd": us to destroy one, "mr": ..., ...}
#include "program.h"

#include <infiniband/verbs.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace ib::bench;

std::size_t count = 10000;

template <class T>
class Many {
 public:
  template <class Create>
  Many(const char* name, Create&& create) : name_(name) {
    objects_.reserve(count);
    const double start = now_us();
    for (std::size_t i = 0; i < count; ++i) objects_.push_back(made(create(), name));
    phase(name, ", \"create_us\": " + each(start));
  }
  // ", name: us of each".
  std::string destroy(int (*destroy_one)(T*)) {
    const double start = now_us();
    for (T* object : objects_) {
      if (destroy_one(object) != 0) fail(name_);
    }
    return std::string(", \"") + name_ + "\": " + each(start);
  }

 private:
  static std::string each(double start) {
    return std::to_string((now_us() - start) / static_cast<double>(count));
  }

  const char* name_;
  std::vector<T*> objects_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) count = std::strtoul(argv[1], nullptr, 10);
  int found = 0;
  ibv_device** devices = ibv_get_device_list(&found);
  if (devices == nullptr || found == 0) fail("there is no device");
  ibv_context* context = made(ibv_open_device(devices[0]), "ibv_open_device");
  ibv_free_device_list(devices);
  ibv_pd* pd = made(ibv_alloc_pd(context), "ibv_alloc_pd");
  ibv_cq* cq = made(ibv_create_cq(context, 16, nullptr, nullptr, 0), "ibv_create_cq");
  std::vector<char> buffer(4096);
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = cq;
  attr.qp_type = IBV_QPT_RC;
  attr.cap = {16, 16, 1, 1, 0};

  phase("none", {});
  Many<ibv_pd> pds("pd", [&] { return ibv_alloc_pd(context); });
  Many<ibv_mr> mrs(
      "mr", [&] { return ibv_reg_mr(pd, buffer.data(), buffer.size(), IBV_ACCESS_LOCAL_WRITE); });
  Many<ibv_cq> cqs("cq", [&] { return ibv_create_cq(context, 16, nullptr, nullptr, 0); });
  Many<ibv_qp> qps("qp", [&] { return ibv_create_qp(pd, &attr); });
  std::string times = qps.destroy(&ibv_destroy_qp);
  times += cqs.destroy(&ibv_destroy_cq);
  times += mrs.destroy(&ibv_dereg_mr);
  times += pds.destroy(&ibv_dealloc_pd);
  phase("gone", times);
  if (ibv_destroy_cq(cq) != 0 || ibv_dealloc_pd(pd) != 0) fail("tidying up");
  return ibv_close_device(context) == 0 ? 0 : 1;
}
