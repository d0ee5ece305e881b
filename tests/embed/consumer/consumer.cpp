// SPDX-License-Identifier: Apache-2.0
// A user's C++ program against the installed package.
#include <cstdio>
#include <vector>

#include <filch/filch.hpp>

int main()
{
    std::vector<int> values = {1, 2, 3, 4};
    filch::runtime runtime("host:1");
    filch::data data = runtime.data(filch::buffer(values).tiles(2));
    filch::graph graph = runtime.graph();
    const int by = 10;
    for (std::uint32_t tile = 0; tile < data.tile_rows(); ++tile) {
        graph.add(
            "add",
            [by](filch::view<int> x) {
                for (int &each : x.column()) {
                    each += by;
                }
            },
            filch::readwrite(data.tile(tile)));
    }
    graph.run();
    std::printf("%d %d %d %d\n", values[0], values[1], values[2], values[3]);
    return values[0] == 11 && values[3] == 14 ? 0 : 1;
}
